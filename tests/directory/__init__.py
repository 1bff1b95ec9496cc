"""Tests against a real Active Directory: a Samba domain controller that they start."""
