package analysis

// SweepUnit is the unit of a metric that is measured over a range; false if there is
// none of that name. They have no targets and no history: see Sweeps.
func SweepUnit(name string) (string, bool) {
	unit, ok := map[string]string{
		"size.latency": "s", "size.bandwidth": "B/s", "size.both": "B/s",
		"inside.core.latency": "s", "inside.core.bandwidth": "B/s", "inside.core.both": "B/s",
		"inside.cache.latency": "s", "inside.cache.bandwidth": "B/s", "inside.cache.both": "B/s",
		"inside.socket.latency": "s", "inside.socket.bandwidth": "B/s", "inside.socket.both": "B/s",
		"inside.sockets.latency": "s", "inside.sockets.bandwidth": "B/s", "inside.sockets.both": "B/s",
		"scale.pingpong.latency": "s", "scale.pingpong.bandwidth": "B/s",
		"scale.natural.latency": "s", "scale.natural.bandwidth": "B/s",
		"scale.random.latency": "s", "scale.random.bandwidth": "B/s",
		"clients.write": "B/s", "clients.write.open": "s", "clients.write.transfer": "B/s", "clients.write.close": "s",
		"clients.read": "B/s", "clients.read.open": "s", "clients.read.transfer": "B/s", "clients.read.close": "s",
		"streams.tcp.bandwidth": "B/s", "streams.tcp.again": "1",
		"streams.udp.bandwidth": "B/s", "streams.udp.loss": "1", "streams.udp.jitter": "s",
	}[name]
	return unit, ok
}
