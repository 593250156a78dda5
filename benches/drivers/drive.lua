-- A workload in LuaJIT: prints the median of its times in microseconds, a tab, and the answer (benches/src/peers/process.rs).
-- JSON is lua-cjson's; without it what needs JSON is left out.
local kind, program, orders_file, text_file = arg[1], arg[2], arg[3], arg[4]
local warm, measure, fewest, most = tonumber(arg[5]), tonumber(arg[6]), tonumber(arg[7]), tonumber(arg[8])

local function read(path)
  local file = assert(io.open(path))
  local all = file:read("*a")
  file:close()
  return all
end

local source, json = read(program), read(orders_file)
text = read(text_file)
local has_json, cjson = pcall(require, "cjson")
if has_json then
  json_decode, json_encode, orders = cjson.decode, cjson.encode, cjson.decode(json)
elseif kind:find("inside") or kind:find("bring") or kind == "import" or program:find("json.lua") then
  io.stderr:write("lua-cjson is missing\n")
  os.exit(1)
end

local compiled = assert(loadstring(source))
local works = {
  compile = function() assert(loadstring(source)) end,
  inside = function() return assert(loadstring(source))() end,
  bring = function()
    orders = json_decode(json)
    return assert(loadstring(source))()
  end,
  ["compiled-inside"] = compiled,
  ["compiled-bring"] = function()
    orders = json_decode(json)
    return compiled()
  end,
  import = function() json_decode(json) end,
  long = compiled,
}

local work, now = works[kind], os.clock
local begun = now()
local answer = work()
if now() - begun > 1 then fewest = 1 end
while (now() - begun) * 1e3 < warm do work() end
local times, spent = {}, 0
while #times < fewest or (spent * 1e3 < measure and #times < most) do
  local start = now()
  work()
  local time = now() - start
  spent = spent + time
  times[#times + 1] = time
end
table.sort(times)
print(times[math.floor(#times / 2) + 1] * 1e6 .. "\t" .. (type(answer) == "number" and ("%.17g"):format(answer) or answer or ""))
