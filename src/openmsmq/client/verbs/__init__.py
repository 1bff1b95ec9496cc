"""What an application can ask for, as steps that both shells carry out."""
