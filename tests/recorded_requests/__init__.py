"""Requests that the deployed jobs make of AWS, recorded on a local lake."""
