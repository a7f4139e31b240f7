"""The service of the experiment: Fibonacci numbers as JSON.

GET /9000 answers with the sequence from 0 up to the first number that is not
below 9000. There is neither a database nor a cache behind it, so what is
measured is uWSGI, Flask and Python.
"""

from flask import Flask, jsonify

app = Flask(__name__)


def fibonacci(limit):
    """The sequence from 0 up to the first number that is at least limit."""
    numbers = [0, 1]
    while numbers[-1] < limit:
        numbers.append(numbers[-1] + numbers[-2])
    return numbers


@app.get("/<int:limit>")
def sequence(limit):
    return jsonify(fibonacci(limit))
