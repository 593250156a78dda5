import re

counts = {}
for run in re.findall(r"[A-Za-z]+", data["text"]):
    if len(run) >= 4:
        word = run.lower()
        counts[word] = counts.get(word, 0) + 1

ranked = sorted(counts.keys(), key=lambda word: (-counts[word], word))
by_length = sorted(counts.keys(), key=lambda word: (-len(word), word))

result = {
    "top": [{"word": word, "count": counts[word]} for word in ranked[:6]],
    "distinct": len(counts),
    "longest": by_length[0] if by_length else None,
}
