import os

bind = "127.0.0.1:8000"
workers = 3
raw_env = [
    "A=1",
]
