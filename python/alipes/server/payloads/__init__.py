"""The payload log: requests and responses that the data plane has copied, sent to where they are looked at later."""
