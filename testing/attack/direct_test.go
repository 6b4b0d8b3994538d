package attack

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/testing/kvtest"
)

// couriers redirect answers of the server, and the bytes that it stores for the attacker, to subjects of the
// attacker's choice.
func couriers() []attack {
	var list []attack
	for _, t := range targets(&fleet{}) {
		row := attack{
			name: "courier-to-" + t.name, control: base, sign: "heard in FLEET on", do: courier(t.name),
			does: "directs answers of the server to " + t.name, never: "they arrive there",
		}
		if t.stored {
			row.sign = t.sign()
		}
		list = append(list, row)
	}

	return list
}

// sign is what the control of a target with an effect shows.
func (t target) sign() string {
	switch {
	case strings.HasPrefix(t.name, "stream-create"):
		return "stream evil is new"
	case strings.HasPrefix(t.name, "stream-delete"):
		return "is gone"
	case strings.HasPrefix(t.name, "stream-update"):
		return "another configuration"
	case strings.HasPrefix(t.name, "stream-purge"):
		return "removed KV_MUSTER_MANIFESTS"
	case strings.HasPrefix(t.name, "consumer-"):
		return "consumers of MUSTER_REPORTS"
	default:
		return "stored"
	}
}

// direct attacks use the subjects of others themselves.
func direct() []attack {
	return []attack{
		{
			name: "direct-publish", control: limitless, sign: "stored",
			does: "publishes on every subject that other users write or subscribe to", never: "a message is stored or heard", do: publishOnOthers,
		}, {
			name: "direct-api-change", control: limitless, sign: "is gone",
			does: "sends JetStream every change request for every stream, with each prefix", never: "a stream, message or consumer changes", do: changeByAPI,
		}, {
			name: "direct-api-read", control: limitless, sign: "learned",
			does: "requests the messages of others from JetStream, by subject, sequence and time, and in the bodies of permitted requests", never: "it learns a foreign value", do: readByAPI,
		}, {
			name: "direct-subscribe", control: limitless, sign: "learned",
			does: "subscribes to the subjects of others, with and without a queue group, and to wildcards, inboxes and subjects of the server", never: "it hears a foreign message", do: subscribeToOthers,
		}, {
			name: "reserved-subjects", control: limitless, sign: "consumers of MUSTER_REPORTS",
			does: "publishes on subjects of the server, and directs answers to them: acknowledgements of others, service replies, gateways, Raft, the system account", never: "anything changes", do: reservedSubjects,
		},
	}
}

func publishOnOthers(a *attacker) {
	for _, t := range targets(a.fleet) {
		if strings.HasPrefix(t.name, "stream-") || strings.HasPrefix(t.name, "consumer-") || strings.HasPrefix(t.name, "message-") {
			continue
		}
		for _, subject := range t.subjects {
			if !a.allowed(subject) {
				a.publish(subject, a.inbox("answer"), nil, []byte(t.payload))
				a.publish(subject, "", nats.Header{"Evil": {"yes"}}, []byte(t.payload))
			}
		}
	}
}

// prefixes are the real and possible prefixes of JetStream requests.
func prefixes() []string {
	return []string{"$JS.API", string(kvstore.JoinedAPI), "$JS.FLEET.API", "$JS.hub.API", "$SYS.REQ.ACCOUNT.FLEET.JS"}
}

func streamsOf(f *fleet) []string {
	var names []string
	for name := range f.planted {
		names = append(names, name)
	}
	slices.Sort(names)

	return names
}

func changeByAPI(a *attacker) {
	config := string(changedConfig(a.fleet))
	for _, prefix := range prefixes() {
		ask := func(verb, body string) {
			if subject := prefix + "." + verb; !a.allowed(subject) {
				a.publish(subject, a.inbox("answer"), nil, []byte(body))
			}
		}
		ask("STREAM.CREATE.evil", `{"name":"evil","subjects":["evil.>"],"storage":"memory"}`)
		ask("STREAM.CREATE.sourcing", `{"name":"sourcing","storage":"memory","sources":[{"name":"KV_MUSTER_MANIFESTS"}]}`)
		ask("STREAM.CREATE.republishing", `{"name":"republishing","subjects":["muster.evil.>"],"storage":"memory","republish":{"src":"muster.evil.>","dest":"muster.ensure.>"}}`)
		ask("STREAM.UPDATE.MUSTER_REPORTS", config)
		for _, verb := range []string{"META.LEADER.STEPDOWN", "ACCOUNT.PURGE.FLEET", "SERVER.REMOVE", "INFO"} {
			ask(verb, "{}")
		}
		for _, stream := range streamsOf(a.fleet) {
			for _, verb := range []string{"STREAM.MSG.DELETE", "STREAM.PURGE", "STREAM.SNAPSHOT", "STREAM.RESTORE", "STREAM.LEADER.STEPDOWN", "STREAM.PEER.REMOVE", "CONSUMER.DURABLE.CREATE"} {
				ask(verb+"."+stream, `{"seq":1}`)
			}
			ask("CONSUMER.CREATE."+stream, fmt.Sprintf(`{"stream_name":%q,"config":{"ack_policy":"none","deliver_subject":"muster.ensure.all"}}`, stream))
			ask("CONSUMER.CREATE."+stream+".evil", fmt.Sprintf(`{"stream_name":%q,"config":{"name":"evil","ack_policy":"none"}}`, stream))
			for _, verb := range []string{"CONSUMER.DELETE", "CONSUMER.PAUSE", "CONSUMER.RESET", "CONSUMER.UNPIN", "CONSUMER.LEADER.STEPDOWN", "CONSUMER.MSG.NEXT"} {
				ask(verb+"."+stream+".dashboard", "")
			}
			ask("STREAM.DELETE."+stream, "")
		}
	}
}

func readByAPI(a *attacker) {
	var bodies []string
	for _, subject := range []string{"$KV.MUSTER_MANIFESTS.node.web02.own", "$KV.MUSTER_MANIFESTS.group.db.own", "$KV.MUSTER_NODES.web02.state", "$KV.MUSTER_NODES.web02.facts", "$KV.MUSTER_NODES.web02.inventory", "$KV.MUSTER_CONTROL.node.web02.pause", "muster.command.node.web02"} {
		for _, key := range []string{"last_by_subj", "next_by_subj"} {
			bodies = append(bodies, fmt.Sprintf(`{%q:%q}`, key, subject), fmt.Sprintf(`{"seq":1,%q:%q,"batch":10}`, key, subject))
		}
		bodies = append(bodies, fmt.Sprintf(`{"multi_last":[%q]}`, subject), fmt.Sprintf(`{"multi_last":[%q,">"],"batch":100}`, subject))
	}
	bodies = append(bodies, `{"seq":1,"batch":1000}`, `{"start_time":"2020-01-01T00:00:00Z","batch":1000}`, `{"seq":2}`, `{"seq":3}`, `{"multi_last":[">"],"up_to_seq":1000}`)
	ask := func(subject, body string) { a.publish(subject, a.inbox("answer"), nil, []byte(body)) }
	for _, pattern := range a.fleet.may[a.limits].Publish {
		// Bundles are for all nodes, and hold no secrets.
		if strings.HasPrefix(pattern, a.api("DIRECT.GET.")) {
			for _, body := range bodies {
				ask(fill(pattern), body)
			}
		}
	}
	for _, prefix := range prefixes() {
		for _, pattern := range a.fleet.may[victim].Publish {
			if verb, ok := strings.CutPrefix(pattern, a.fleet.api+"."); ok {
				ask(prefix+"."+fill(verb), "")
			}
		}
		for _, stream := range streamsOf(a.fleet) {
			for _, body := range bodies {
				ask(prefix+".STREAM.MSG.GET."+stream, body)
				if subject := prefix + ".DIRECT.GET." + stream; !slices.Contains(a.fleet.may[a.limits].Publish, subject) {
					ask(subject, body)
				}
			}
			for _, verb := range []string{"STREAM.INFO", "CONSUMER.LIST", "CONSUMER.NAMES"} {
				ask(prefix+"."+verb+"."+stream, `{"subjects_filter":">"}`)
			}
		}
	}
	a.request(a.api("STREAM.LIST"), nil, []byte(`{"subjects_filter":">","subject":"$KV.>"}`))
	a.last()
}

func subscribeToOthers(a *attacker) {
	subjects := slices.Clone(a.fleet.may[victim].Subscribe)
	subjects = append(subjects, fills(a.fleet.may[victim].Publish)...)
	subjects = append(subjects, ">", "*", "*.>", "muster.>", "muster.*.>", "_INBOX.>", "_INBOX.admin.>", "_INBOX_web02.>", "_INBOX*.>", "_R_.>", "_GR_.>", "$SYS.>", "$JS.>", "$JSC.>", "$NRG.>", "$G.>", "$KV.>", "$O.>", "$SRV.>", "void.>",
		"muster.changed.>", "muster.changed.node.*.own", "muster.changed.node.web02.>", "muster.command.>", "muster.ensure.>", "muster.ensure.*.*", "muster.report.>", "muster.reply.>", "muster.registration.>")
	for _, subject := range subjects {
		if !slices.Contains(a.fleet.may[a.limits].Subscribe, subject) {
			a.subscribe(subject)
			a.subscribe(subject, "group")
		}
	}
	a.fleet.bait(a)
}

// bait is what a fleet does all day. It is no breach, but to hear it is one.
func (f *fleet) bait(a *attacker) {
	a.t.Helper()
	ctx, nc := a.t.Context(), f.admin.Conn
	_, err := f.admin.Put(ctx, "node.web02.bait", []byte(secret+"web02"))
	if err == nil {
		_, err = f.admin.Put(ctx, "group.db.bait", []byte(secret+"db"))
	}
	if err == nil {
		_, err = kvstore.NewControl(f.admin.Store).Put(ctx, "node.web02.labels", []byte(secret+"web02"))
	}
	if err == nil {
		err = f.admin.PutCommand(ctx, "node.web02", "bait", []byte(secret+"web02"), time.Hour)
	}
	for _, subject := range []string{"muster.ensure.node.web02", "muster.ensure.group.db", "muster.preview.node.web02", "muster.status.node.web02"} {
		if err == nil {
			err = nc.PublishRequest(subject, "muster.reply.bait.=", []byte(secret+"web02"))
		}
	}
	if err == nil {
		err = nc.Publish("muster.reply.bait.web02", []byte(secret+"web02"))
	}
	for _, subject := range []string{"muster.report.web02.run.failed", "$KV.MUSTER_NODES.web02.facts", "$KV.MUSTER_NODES.web02.inventory"} {
		if err == nil {
			_, err = nc.Request(subject, []byte(secret+"web02"), kvtest.Deadline)
		}
	}
	if err != nil {
		a.t.Fatalf("bait: %v", err)
	}
	f.rebase(a)
	a.last()
}

func reservedSubjects(a *attacker) {
	subjects := []string{
		"$JS.ACK.MUSTER_REPORTS.dashboard.1.1.1.1.0", "$JS.ACK.MUSTER_REPORTS.dashboard.1.1.1.1.0@muster.ensure.all", "$JS.ACK._.FLEET.MUSTER_REPORTS.dashboard.1.1.1.1.0.x", "$JS.FC.MUSTER_REPORTS.dashboard.x", "$JS.SNAPSHOT.ACK.x", "$JS.M.x", "$JS.S.x",
		"_R_.evil", "_R_.evil.x", "_GR_.evil.x.y", "$GR.evil.x", "$NRG.AE.x", "$NRG.P.x", "$NRG.V.x", "$JSC.R.x", "$JSC.CI.FLEET.x", "$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.USER.INFO", "$SYS.REQ.SERVER.PING.JSZ", "$SYS.REQ.CLAIMS.LIST", "$SYS.ACCOUNT.FLEET.DISCONNECT", "$LDS.x", "$MQTT.x", "$G.x", "_INBOX.$FI", "muster.ensure.all.evil.10.ok.1.0.$FI",
	}
	for _, subject := range subjects {
		a.publish(subject, a.inbox("answer"), nil, nil)
		if a.user != open {
			a.courier(target{subjects: []string{subject}}, nil)
		}
	}
}
