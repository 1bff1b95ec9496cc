"""Objects of the model as entries of Active Directory, and back. [MQDSSM 3.1.6]"""
