"""What happens to a vector between its sender and its receivers: rounding, leaving out, hiding. See channel.py."""

from byzmesh.channels.base import Stage, Undecodable, channel_stages, stages
from byzmesh.channels.channel import Channel, canonical_channel
from byzmesh.channels.sizes import frame_bytes, sent_bytes

__all__ = [
    "Channel",
    "Stage",
    "Undecodable",
    "canonical_channel",
    "channel_stages",
    "frame_bytes",
    "sent_bytes",
    "stages",
]
