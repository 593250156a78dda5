Array.from({ length: 200000 }, (_, i) => `item-${i}=${i * 7}`).join(",").length
