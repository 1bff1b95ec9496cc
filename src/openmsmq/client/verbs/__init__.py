"""What an application can ask for, as plans that both shells carry out."""
