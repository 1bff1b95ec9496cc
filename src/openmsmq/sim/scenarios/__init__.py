"""What a seed decides before its run begins."""
