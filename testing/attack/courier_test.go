package attack

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
)

// target is a subject to which the attacker redirects answers of the server.
type target struct {
	name     string
	subjects []string
	// payload is what a listener there would take.
	payload string
	// stored reports whether streams must change where the delivery works.
	stored bool
}

// targets are all subjects that another user listens on, or that trigger an action.
func targets(f *fleet) []target {
	const manifest = `{"resources":[{"file":[{"/etc/cron.d/evil":{"content":"* * * * * root true"}}]}]}`
	both := func(verb string) []string { return []string{"$JS.API." + verb, "fleet.API." + verb} }
	list := []target{
		{"manifests-of-a-node", []string{"$KV.MUSTER_MANIFESTS.node.web02.evil", "$KV.MUSTER_MANIFESTS.node.web02.own", "$KV.MUSTER_MANIFESTS.node.web01.evil"}, manifest, true},
		{"manifests-of-a-group", []string{"$KV.MUSTER_MANIFESTS.group.db.evil", "$KV.MUSTER_MANIFESTS.group.web.evil"}, manifest, true},
		{"manifests-of-all", []string{"$KV.MUSTER_MANIFESTS.group.all.evil"}, manifest, true},
		{"commands", []string{"muster.command.node.web02", "muster.command.group.db", "muster.command.group.all", "muster.command.node.web02.evil", "muster.command.group.all.evil"}, `{"type":"exec"}`, true},
		{"control", []string{"$KV.MUSTER_CONTROL.node.web02.pause", "$KV.MUSTER_CONTROL.node.web02.labels", "$KV.MUSTER_CONTROL.node.web02.groups", "$KV.MUSTER_CONTROL.group.db.pause", "$KV.MUSTER_CONTROL.group.all.pause", "$KV.MUSTER_CONTROL.node.web01.pause"}, `{"protocol":"io.muster.v1.pause"}`, true},
		{"state", []string{"$KV.MUSTER_NODES.web02.state"}, `{"node":"web02"}`, true},
		{"facts", []string{"$KV.MUSTER_NODES.web02.facts"}, `{}`, true},
		{"inventory", []string{"$KV.MUSTER_NODES.web02.inventory"}, `{}`, true},
		{"reports", []string{"muster.report.web02.run.stable"}, `{}`, true},
		{"registrations", []string{"muster.registration.lab.http.site.web02.192_0_2_1.80"}, `{}`, true},
		{"data", []string{"$KV.MUSTER_DATA.site"}, "a: 2", true},
		{"bundles", []string{"$O.MUSTER_BUNDLES.M.evil", "$O.MUSTER_BUNDLES.C.evil"}, `{}`, true},
		{"changed", []string{"muster.changed.node.web02.evil", "muster.changed.group.all.evil", "muster.changed.node.web02._control.pause"}, "", false},
		{"stream-delete", both("STREAM.DELETE.MUSTER_REPORTS"), "", true},
		{"stream-purge", both("STREAM.PURGE.KV_MUSTER_MANIFESTS"), "", true},
		{"stream-create", both("STREAM.CREATE.evil"), `{"name":"evil","subjects":["evil.>"],"storage":"memory"}`, true},
		{"stream-update", both("STREAM.UPDATE.MUSTER_REPORTS"), string(changedConfig(f)), true},
		{"message-delete", both("STREAM.MSG.DELETE.KV_MUSTER_NODES"), `{"seq":1}`, false},
		{"consumer-create", both("CONSUMER.CREATE.MUSTER_REPORTS.evil"), `{"stream_name":"MUSTER_REPORTS","config":{"name":"evil","ack_policy":"none"}}`, true},
		{"consumer-delete", both("CONSUMER.DELETE.MUSTER_REPORTS.dashboard"), "", true},
		{"replies", []string{"muster.reply.question.web02", "_INBOX.guess.x"}, `{"node":"web02"}`, false},
	}
	live := target{"listeners", nil, `{"type":"exec"}`, false}
	for _, s := range f.may[victim].Subscribe {
		if !strings.HasPrefix(s, "_INBOX") {
			live.subjects = append(live.subjects, fill(s))
		}
	}

	return append(list, live, target{"writes", fills(f.may[victim].Publish), `{}`, true})
}

// changedConfig is a stream's configuration that an attacker would like better.
func changedConfig(f *fleet) []byte {
	var config map[string]any
	if err := json.Unmarshal(f.last["MUSTER_REPORTS"].info.Config, &config); err != nil {
		return nil
	}
	config["max_msgs"] = 1
	data, _ := json.Marshal(config)

	return data
}

func fills(patterns []string) []string {
	var out []string
	for _, p := range patterns {
		out = append(out, fill(p))
	}

	return out
}

// fill replaces the wildcards of a subject.
func fill(pattern string) string {
	tokens := strings.Split(pattern, ".")
	for i, token := range tokens {
		if token == "*" || token == ">" {
			tokens[i] = "own"
		}
	}

	return strings.Join(tokens, ".")
}

// source is a way to have the server answer.
type source struct {
	name    string
	subject string
	header  nats.Header
	body    string
}

// sources are all requests that return an answer to the attacker, derived from its publish permissions. It
// chooses payload and headers of stored messages.
func (a *attacker) sources(payload string) []source {
	list := []source{
		{"direct get", a.read(), nil, ""},
		{"bad request", a.read(), nil, "{"},
		{"list of streams", a.api("STREAM.LIST"), nil, "{}"},
	}
	if a.limits != viewing {
		list = append(list, source{"acknowledgement", a.own(), nil, payload})
	}
	if a.limits == attacking {
		list = append(list, source{"not found", a.fleet.theirs(a.api("DIRECT.GET.KV_MUSTER_MANIFESTS.$KV.MUSTER_MANIFESTS.node." + attacking + ".none")), nil, ""})
	}
	if !whole() {
		return list
	}
	if a.limits != viewing {
		for _, subject := range a.writes() {
			list = append(list, source{"acknowledgement of " + subject, subject, nil, payload})
		}
	}
	for _, pattern := range a.fleet.may[a.limits].Publish {
		verb := strings.TrimPrefix(pattern, a.fleet.api+".")
		switch {
		case strings.HasPrefix(verb, "STREAM.INFO."):
			list = append(list, source{verb, pattern, nil, `{"subjects_filter":">"}`})
		case strings.HasPrefix(verb, "DIRECT.GET."):
			list = append(list, source{verb, fill(pattern), nil, ""})
			if strings.Count(verb, ".") == 2 {
				for i, body := range []string{`{"seq":1}`, `{"seq":1,"batch":2}`, `{"multi_last":[">"],"batch":2}`} {
					list = append(list, source{fmt.Sprint(verb, " ", i), pattern, nil, body})
				}
			}
		}
	}

	return list
}

// courier has every answer delivered to each subject of a target.
func courier(name string) func(*attacker) {
	return func(a *attacker) {
		for _, t := range targets(a.fleet) {
			if t.name == name {
				a.courier(t, nil)
				if !whole() {
					return
				}
				a.courier(t, nats.Header{"Nats-Expected-Stream": {"KV_MUSTER_NODES"}, "Evil": {"yes"}})
			}
		}
	}
}

// courier stores the payload of a target with a header, and has it and all else that
// the server answers delivered there.
func (a *attacker) courier(t target, header nats.Header) {
	for _, subject := range t.subjects {
		if a.allowed(subject) {
			continue
		}
		a.store(header, t.payload)
		for _, s := range a.sources(t.payload) {
			a.deliver(s, subject)
		}
		a.push(subject)
		a.pull(subject)
	}
}

// allowed reports whether a subject is the attacker's own.
func (a *attacker) allowed(subject string) bool {
	return a.fleet.allowed(a.limits)(subject) || matchesAny(subject, a.fleet.may[a.limits].Publish)
}

// deliver has one answer sent to a subject; the second, to itself, comes when the
// first is out.
func (a *attacker) deliver(s source, subject string) {
	if a.publish(s.subject, subject, s.header, []byte(s.body)) && a.request(s.subject, s.header, []byte(s.body)) {
		a.arrived(s.name, subject)
	}
}

// arrived records the way of a message that arrived on a subject.
func (a *attacker) arrived(way, subject string) {
	if a.fleet.control && a.fleet.reached(a.t, subject) {
		a.landed[way] = true
	}
}

// consumes makes a consumer, and reports whether it can: where one cannot, no other is
// tried.
func (a *attacker) consumes(create string, config []byte) bool {
	if a.consumerless {
		return false
	}
	made := a.try(create, nil, config)
	a.consumerless = !made && !a.fleet.control

	return made
}

// push has a consumer deliver to a subject.
func (a *attacker) push(subject string) {
	create := a.api("CONSUMER.CREATE.KV_MUSTER_MANIFESTS.muster-list-" + a.limits + ".$KV.MUSTER_MANIFESTS.node." + a.limits + ".>")
	config := fmt.Sprintf(`{"stream_name":"KV_MUSTER_MANIFESTS","config":{"name":"muster-list-%s","filter_subject":"$KV.MUSTER_MANIFESTS.node.%s.>","ack_policy":"none","deliver_subject":%q}}`, a.limits, a.limits, subject)
	if a.consumes(create, []byte(config)) {
		a.request(a.api("CONSUMER.DELETE.KV_MUSTER_MANIFESTS.muster-list-"+a.limits), nil, nil)
		a.arrived("push consumer", subject)
	}
}

// pull has a consumer answer to a subject.
func (a *attacker) pull(subject string) {
	create := a.api("CONSUMER.CREATE.MUSTER_COMMANDS.muster-commands-" + a.limits + ".muster.command.node." + a.limits)
	config := fmt.Sprintf(`{"stream_name":"MUSTER_COMMANDS","config":{"name":"muster-commands-%s","filter_subject":"muster.command.node.%s","ack_policy":"none"}}`, a.limits, a.limits)
	if a.consumes(create, []byte(config)) {
		next := a.api("CONSUMER.MSG.NEXT.MUSTER_COMMANDS.muster-commands-" + a.limits)
		a.publish(next, subject, nil, []byte(`{"batch":1,"no_wait":true}`))
		a.request(a.api("CONSUMER.DELETE.MUSTER_COMMANDS.muster-commands-"+a.limits), nil, nil)
		a.arrived("pull reply", subject)
	}
}
