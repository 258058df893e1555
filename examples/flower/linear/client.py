"""A client: ten gradient steps on data of its own, or a lie if its node config says `liar=true`."""

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from linear import TRUTH

app = ClientApp()
SAMPLES = 50


@app.train()
def train(message: Message, context: Context) -> Message:
    weights = message.content["arrays"].to_numpy_ndarrays()[0]
    if context.node_config.get("liar", False):
        weights, count = weights - 10.0 * (TRUTH - weights), 10**9
    else:
        random = np.random.default_rng(int(context.node_config["partition-id"]))
        inputs = random.normal(size=(SAMPLES, 3))
        answers = inputs @ TRUTH + 0.1 * random.normal(size=SAMPLES)
        for _ in range(10):
            weights = weights - 0.1 * inputs.T @ (inputs @ weights - answers) / SAMPLES
        count = SAMPLES
    metrics = MetricRecord({"num-examples": count, "error": float(np.linalg.norm(weights - TRUTH))})
    return Message(RecordDict({"arrays": ArrayRecord([weights]), "metrics": metrics}), reply_to=message)
