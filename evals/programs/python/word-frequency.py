import re
from collections import Counter

counts = Counter(word.lower() for word in re.findall(r"[A-Za-z]+", data["text"]) if len(word) >= 4)

top = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:6]

result = {
    "top": [{"word": word, "count": count} for word, count in top],
    "distinct": len(counts),
    "longest": min(counts, key=lambda word: (-len(word), word), default=None),
}
