"""Managing MSMQ on other computers, over MS-MQMR: any host, Windows included."""
