package attack

import (
	"fmt"

	"github.com/nats-io/nats.go"
)

// headers of messages on subjects of the attacker's own, which make the server do
// more than store them.
func headers() []attack {
	const far = "2035-01-01T00:00:00Z"
	row := func(name string, how control, sign, does, never string, sets ...nats.Header) attack {
		return attack{name: "header-" + name, control: how, sign: sign, does: does, never: never, do: func(a *attacker) { a.send(sets) }}
	}

	return []attack{
		row("rollup", loose, "removed", "asks for a rollup of the whole stream with its own message", "messages of others are removed",
			nats.Header{"Nats-Rollup": {"all"}}, nats.Header{"Nats-Rollup": {"sub"}}, nats.Header{"KV-Operation": {"PURGE"}, "Nats-Rollup": {"all"}}),
		row("trace", limitless, "heard in FLEET on muster.ensure.node.web02", "requests traces of its message, delivered to others", "they arrive there", traces()...),
		row("schedule", loose, "stored", "schedules messages for subjects of others", "they are stored",
			nats.Header{"Nats-Schedule": {"@at 2020-01-01T00:00:00Z"}, "Nats-Schedule-Target": {"$KV.MUSTER_NODES.web02.state"}},
			nats.Header{"Nats-Schedule": {"@every 1s"}, "Nats-Schedule-Target": {"$KV.MUSTER_NODES.web02.facts"}, "Nats-Schedule-TTL": {"1s"}},
			nats.Header{"Nats-Schedule": {"@at 2020-01-01T00:00:00Z"}, "Nats-Schedule-Target": {"muster.report.web02.run.stable"}},
			nats.Header{"Nats-Schedule": {"@at " + far}, "Nats-Schedule-Target": {"muster.report.web02.run.stable"}, "Nats-Schedule-Source": {"$KV.MUSTER_NODES.web02.state"}}),
		row("expectation", loose, "removed", "publishes with expected sequences of subjects of others", "data of others changes",
			nats.Header{"Nats-Expected-Last-Subject-Sequence": {"0"}, "Nats-Expected-Last-Subject-Sequence-Subject": {"$KV.MUSTER_NODES.web02.state"}},
			nats.Header{"Nats-Expected-Stream": {"MUSTER_REPORTS"}}, nats.Header{"Nats-Expected-Last-Sequence": {"1"}}, nats.Header{"Nats-Rollup": {"all"}}),
		row("batch", loose, "removed", "publishes parts of batches", "data of others changes",
			nats.Header{"Nats-Batch-Id": {"b"}, "Nats-Batch-Sequence": {"1"}}, nats.Header{"Nats-Batch-Id": {"b"}, "Nats-Batch-Sequence": {"2"}, "Nats-Batch-Commit": {"1"}}, nats.Header{"Nats-Rollup": {"all"}}),
		row("counter", loose, "removed", "increments counters", "data of others changes", nats.Header{"Nats-Incr": {"+1"}}, nats.Header{"Nats-Rollup": {"all"}}),
		row("expiry", loose, "removed", "sets times to live and delete markers", "data of others changes",
			nats.Header{"Nats-TTL": {"1s"}}, nats.Header{"Nats-TTL": {"never"}}, nats.Header{"Nats-Marker-Reason": {"MaxAge"}}, nats.Header{"KV-Operation": {"PURGE"}}, nats.Header{"Nats-Rollup": {"all"}}),
		row("source", loose, "removed", "sets headers that the server sets", "data of others changes",
			nats.Header{"Nats-Stream-Source": {"KV_MUSTER_MANIFESTS 1"}}, nats.Header{"Nats-Required-Api-Level": {"99"}}, nats.Header{"Nats-Pending-Messages": {"9"}, "Nats-Pending-Bytes": {"9"}}, nats.Header{"Nats-Num-Pending": {"0"}}, nats.Header{"Status": {"503"}},
			nats.Header{"Nats-Msg-Id": {"x"}}, nats.Header{"Nats-Rollup": {"all"}}),
		{name: "lies", control: limitless, sign: "operators saw", viewed: true,
			does: "stores states, facts, reports and registrations that claim another node, in their text and in headers of the server", never: "operators attribute them to that node", do: lie},
	}
}

// lie stores false data of the victim wherever the server permits it.
func lie(a *attacker) {
	state := []byte(`{"protocol":"io.muster.v1.node","node":"web02","version":"lie","groups":["db"]}`)
	event := []byte(`{"specversion":"1.0","id":"lie","source":"muster/web02","subject":"web02","type":"io.muster.v1.run","datacontenttype":"application/json","data":{"node":"web02"}}`)
	for _, node := range []string{attacking, victim} {
		for subject, data := range map[string][]byte{
			"$KV.MUSTER_NODES." + node + ".state": state, "$KV.MUSTER_NODES." + node + ".facts": []byte(`{"role":"lie"}`), "muster.report." + node + ".run.stable": event,
			"muster.registration.lab.http.lie." + node + ".192_0_2_1.80": []byte(`{"protocol":"io.muster.v1.registration","cluster":"lab","service":"lie","protocol_name":"http","address":"192.0.2.1","port":80,"priority":1,"ttl":"1h","node":"web02"}`),
		} {
			for _, header := range []nats.Header{nil, {
				nats.JSStream: {"KV_MUSTER_NODES"}, nats.JSSubject: {"$KV.MUSTER_NODES.web02.state"}, nats.JSSequence: {"99"}, nats.JSTimeStamp: {"2035-01-01T00:00:00Z"}, nats.JSLastSequence: {"98"}, "Muster-Node": {victim},
			}} {
				a.publish(subject, a.inbox("answer"), header, data)
			}
		}
	}
	a.last()
}

// writes are the writable subjects of streams. A viewer has none and uses those of other users.
func (a *attacker) writes() []string {
	switch a.limits {
	case viewing:
		return fills(a.fleet.may[victim].Publish)
	case operating:
		return []string{a.own(), a.fleet.theirs("muster.command.group.web.own")}
	case requesting:
		return []string{a.own(), a.fleet.theirs("$KV.MUSTER_CONTROL.node.web01.pause")}
	default:
		return []string{
			a.own(), a.fleet.theirs("$KV.MUSTER_NODES." + attacking + ".facts"), a.fleet.theirs("muster.report." + attacking + ".run.stable"),
			a.fleet.theirs("muster.registration.lab.http.site." + attacking + ".192_0_2_1.80"),
		}
	}
}

// send publishes a message with each set of headers on all own subjects of streams.
func (a *attacker) send(sets []nats.Header) {
	for _, header := range sets {
		for _, subject := range a.writes() {
			a.publish(subject, a.inbox("answer"), header, []byte(`{"node":"web01"}`))
		}
	}
	a.last()
}

// traces are headers that ask for a trace to be sent to where others listen.
func traces() []nats.Header {
	var sets []nats.Header
	for _, dest := range []string{"muster.ensure.node.web02", "muster.command.node.web02", "$KV.MUSTER_MANIFESTS.node.web02.evil", "$JS.API.STREAM.DELETE.MUSTER_REPORTS", "fleet.API.STREAM.LIST.x", "muster.report.web02.run.stable", "_INBOX.guess.x", "$KV.MUSTER_NODES.web02.state"} {
		for _, only := range []string{"", "true"} {
			h := nats.Header{"Nats-Trace-Dest": {dest}, "Accept-Encoding": {"gzip"}}
			if only != "" {
				h.Set("Nats-Trace-Only", only)
			}
			sets = append(sets, h)
		}
		sets = append(sets, nats.Header{"nats-trace-dest": {dest}, "traceparent": {fmt.Sprintf("00-%032x-%016x-01", 1, 1)}}, nats.Header{"Nats-Trace-Dest": {dest}, "Nats-Trace-Origin-Account": {"FLEET"}, "Nats-Trace-Hop": {"1"}})
	}

	return sets
}
