-- For wrk: posts a file again and again, and prints the figures as one line of JSON.
-- Arguments: FILE NAME:VALUE...; without a FILE ("-") the requests are GETs.

function init(arguments)
  if arguments[1] ~= "-" then
    local file = assert(io.open(arguments[1], "rb"))
    wrk.method = "POST"
    wrk.body = file:read("*a")
    file:close()
  end
  for index = 2, #arguments do
    local name, value = arguments[index]:match("^([^:]+):%s*(.*)$")
    wrk.headers[name] = value
  end
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '\nFIGURES {"requests": %d, "duration_us": %d, "p50_us": %d, "p99_us": %d, "errors": %d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
