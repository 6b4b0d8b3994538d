package attack

import (
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// deaf is how long a server that does not answer is listened to.
const deaf = 2 * time.Second

// protocol attacks write lines that no client writes.
func protocol() []attack {
	return []attack{
		{
			name: "protocol-lines", control: limitless, sign: "stored",
			does: "writes lines of the protocols of routes, leaf nodes and the server, repeated CONNECTs, and subjects that clients refuse", never: "data of others changes or is heard", do: writeLines,
		}, {
			name: "protocol-identity", control: limitless, sign: "learned",
			does: "claims another account in headers, also malformed ones", never: "it sees data of that account", do: claimIdentity,
		},
	}
}

// lines are written one connection each, because the server closes most.
func lines(f *fleet) []string {
	const key, data = "$KV.MUSTER_MANIFESTS.node.web02.evil", "4\r\nevil\r\n"
	list := []string{
		"PUB " + key + " " + data, "PUB\t" + key + "\t" + data, "pub " + key + " " + data,
		"RS+ FLEET > \r\nRMSG FLEET " + key + " " + data, "RS+ NODES muster.ensure.>\r\n", "LS+ >\r\nLMSG " + key + " " + data,
		"LMSG " + key + " | x " + data, "A+ FLEET\r\n", "A- FLEET\r\n", "A- NODES\r\n", "MSG " + key + " 1 " + data, "HMSG " + key + " 1 12 16\r\nNATS/1.0\r\n\r\nevil\r\n",
		`INFO {"server_id":"evil","cluster":"c","connect_urls":["127.0.0.1:1"]}` + "\r\n",
		`CONNECT {"account":"FLEET","new_account":true,"user":"web01","pass":"web01","verbose":false}` + "\r\nPUB " + key + " " + data,
		`CONNECT {"user":"web01","pass":"web01","cluster":"c","name":"n1","routes":true,"protocol":3}` + "\r\nPUB " + key + " " + data,
		"CONNECT {}\r\nPUB " + key + " " + data,
		"SUB > 900\r\nSUB > evil 901\r\nSUB muster.ensure.node.web02 902\r\n", "UNSUB 1\r\nUNSUB 999999\r\n",
		"PUB muster.ensure.all\x00 " + data, "PUB muster..ensure.all " + data, "PUB .muster.ensure.all " + data,
		"PUB > " + data, "PUB muster.ensure.* " + data, "PUB *.ensure.all " + data,
	}
	for _, reply := range []string{">", "*", "muster.>", "muster.ensure.*", "muster.*.all", "muster.ensure..all", "muster.ensure.all.", "$KV.MUSTER_MANIFESTS.node.web02.>", "$KV.*.node.web02.evil", "_INBOX_web02.>", "_INBOX_web02.*.*"} {
		list = append(list, fmt.Sprintf("PUB %s.STREAM.LIST %s 2\r\n{}\r\n", f.api, reply), fmt.Sprintf("PUB $KV.MUSTER_NODES.web01.state %s %s", reply, data))
	}

	return list
}

func writeLines(a *attacker) {
	for _, line := range lines(a.fleet) {
		other := a.fleet.attacker(a.t, a.user, a.limits)
		_, err := other.wire.Write([]byte(line + "PING\r\n"))
		if err == nil {
			// The server answers, or has closed the connection.
			_ = other.nc.FlushTimeout(deaf)
		}
		other.nc.Close()
		a.mu.Lock()
		a.got = append(a.got, other.got...)
		a.mu.Unlock()
	}
}

func claimIdentity(a *attacker) {
	if a.user == open {
		nc := a.fleet.connect(a.t, "other", 0)
		m, err := nc.Request("$JS.API.STREAM.LIST", nil, deaf)
		if err != nil {
			a.t.Fatal(err)
		}
		a.note(m)
	}
	list := a.api("STREAM.LIST")
	for _, acc := range []string{"OTHER", "FLEET", "SYS", "$SYS", "$G"} {
		for _, info := range []string{fmt.Sprintf(`{"acc":%q}`, acc), fmt.Sprintf(`{"svc":%q}`, acc), fmt.Sprintf(`{"acc":%q,"svc":%q,"reply":"muster.ensure.all"}`, acc, acc)} {
			a.request(list, nats.Header{"Nats-Request-Info": {info, info}}, nil)
			const name = "Nats-Request-Info"
			for _, block := range []string{
				"NATS/1.0\r\n" + name + ": " + info + "\r\n", "NATS/1.0\r\n" + name + ": " + info, "NATS/1.0\r\n" + name + ":" + info + "\n\r\n",
				"NATS/1.0\r\n" + name + ": " + info + "\r\n" + name + ": " + info + "\r\n" + name + ": " + info + "\r\n\r\n",
				"NATS/1.0\r\nX: " + name + "\n" + name + ": " + info + "\r\n\r\n", "NATS/1.0\r\n" + strings.ToLower(name) + ": " + info + "\r\n\r\n", name + ": " + info + "\r\n\r\n",
			} {
				line := fmt.Sprintf("HPUB %s %s %d %d\r\n%s{}\r\nPING\r\n", list, a.inbox("answer"), len(block), len(block)+2, block)
				if _, err := a.wire.Write([]byte(line)); err != nil {
					a.t.Fatal(err)
				}
			}
		}
	}
	a.last()
}
