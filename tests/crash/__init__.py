"""Queue managers that are killed, lose their power or their disk, under load and in earnest."""
