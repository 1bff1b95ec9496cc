"""What is durable: an ordered map of small records behind one port, with two adapters."""
