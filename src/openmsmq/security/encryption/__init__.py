"""Bodies encrypted for their destination, and decrypted there."""
