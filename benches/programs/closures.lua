local function map(f, xs) local out = {} for i = 1, #xs do out[i] = f(xs[i]) end return out end
local function filter(f, xs) local out = {} for i = 1, #xs do if f(xs[i]) then out[#out + 1] = xs[i] end end return out end
local function reduce(f, acc, xs) for i = 1, #xs do acc = f(acc, xs[i]) end return acc end
local range = {}
for i = 0, 999999 do range[i + 1] = i end
return reduce(function(sum, x) return sum + x end, 0,
  filter(function(x) return x % 2 == 0 end, map(function(x) return x * 3 end, range)))
