package registration_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
)

func entry() model.RegisterEntry {
	return model.RegisterEntry{Cluster: "prod", Service: "shop", Protocol: "http", Address: "10.0.0.1", Port: number(80)}
}

func number(n int) *int { return &n }

// TestEntriesThatAreNotValid has a row for each problem (formats.md, io.muster.v1.registration).
func TestEntriesThatAreNotValid(t *testing.T) {
	ttl := func(d time.Duration) *model.TTL { return (*model.TTL)(&d) }
	for name, c := range map[string]struct {
		change            func(*model.RegisterEntry)
		property, problem string
	}{
		"no cluster":   {func(e *model.RegisterEntry) { e.Cluster = "" }, "cluster", "`cluster` is required"},
		"cluster":      {func(e *model.RegisterEntry) { e.Cluster = "a.b" }, "cluster", "`cluster` must be one word of letters, digits, - and _, at most 128, not \"a.b\""},
		"no service":   {func(e *model.RegisterEntry) { e.Service = "" }, "service", "`service` is required"},
		"service":      {func(e *model.RegisterEntry) { e.Service = "a b" }, "service", "`service` must be one word of letters, digits, - and _, at most 128, not \"a b\""},
		"reserved":     {func(e *model.RegisterEntry) { e.Cluster = "_c" }, "cluster", "`cluster` must not begin with _, which is reserved, as in \"_c\""},
		"reserved too": {func(e *model.RegisterEntry) { e.Service = "_" }, "service", "`service` must not begin with _, which is reserved, as in \"_\""},
		"no protocol":  {func(e *model.RegisterEntry) { e.Protocol = "" }, "protocol", "`protocol` is required"},
		"protocol":     {func(e *model.RegisterEntry) { e.Protocol = "*" }, "protocol", "`protocol` must be one word of letters, digits, - and _, at most 128, not \"*\""},
		"no address":   {func(e *model.RegisterEntry) { e.Address = "" }, "address", "`address` is required (for example ${ Facts.network.primary.address })"},
		"address":      {func(e *model.RegisterEntry) { e.Address = "a_b" }, "address", "`address` must be an IP address or a host name, not \"a_b\""},
		"a zone":       {func(e *model.RegisterEntry) { e.Address = "fe80::1%eth0" }, "address", "`address` must be an IP address or a host name, not \"fe80::1%eth0\""},
		"zero":         {func(e *model.RegisterEntry) { e.Port = number(0) }, "port", "`port` must be from 1 to 65535, not 0"},
		"below":        {func(e *model.RegisterEntry) { e.Port = number(-1) }, "port", "`port` must be from 1 to 65535, not -1"},
		"port":         {func(e *model.RegisterEntry) { e.Port = number(65536) }, "port", "`port` must be from 1 to 65535, not 65536"},
		"priority":     {func(e *model.RegisterEntry) { e.Priority = number(0) }, "priority", "`priority` must be from 1 to 255, not 0"},
		"a high one":   {func(e *model.RegisterEntry) { e.Priority = number(256) }, "priority", "`priority` must be from 1 to 255, not 256"},
		"a short ttl":  {func(e *model.RegisterEntry) { e.TTL = ttl(time.Second) }, "ttl", "`ttl` must be at least 3s, or never, not 1s"},
		"beyond":       {func(e *model.RegisterEntry) { e.Address = "10.0.0.999" }, "address", "`address` must be an IP address or a host name, not \"10.0.0.999\""},
		"too long":     {func(e *model.RegisterEntry) { e.Address = "256.1.1.1" }, "address", "`address` must be an IP address or a host name, not \"256.1.1.1\""},
		"a number":     {func(e *model.RegisterEntry) { e.Address = "1" }, "address", "`address` must be an IP address or a host name, not \"1\""},
		"no address 4": {func(e *model.RegisterEntry) { e.Address = "0.0.0.0" }, "address", "`address` must be reachable from other machines, not \"0.0.0.0\" (for example ${ Facts.network.primary.address })"},
		"no address 6": {func(e *model.RegisterEntry) { e.Address = "::" }, "address", "`address` must be reachable from other machines, not \"::\" (for example ${ Facts.network.primary.address })"},
		"mapped":       {func(e *model.RegisterEntry) { e.Address = "::ffff:0.0.0.0" }, "address", "`address` must be reachable from other machines, not \"::ffff:0.0.0.0\" (for example ${ Facts.network.primary.address })"},
		"annotations":  {func(e *model.RegisterEntry) { e.Annotations = map[string]string{"a": strings.Repeat("x", 16<<10)} }, "annotations", "`annotations` have 16385 bytes, at most 16384 are allowed"},
		"a long word":  {func(e *model.RegisterEntry) { e.Service = strings.Repeat("x", 129) }, "service", "`service` must be one word of letters, digits, - and _, at most 128, not \"" + strings.Repeat("x", 129) + "\""},
		"a long host":  {func(e *model.RegisterEntry) { e.Address = strings.Repeat("x.", 130) + "x" }, "address", "`address` must be an IP address or a host name, not \"" + strings.Repeat("x.", 130)[:199] + "… (63 more characters)"},
		"a long label": {func(e *model.RegisterEntry) { e.Address = strings.Repeat("x", 64) + ".example" }, "address", "`address` must be an IP address or a host name, not \"" + strings.Repeat("x", 64) + ".example\""},
		"two lines":    {func(e *model.RegisterEntry) { e.Annotations = map[string]string{"a": "x\n- exec: []"} }, "annotations", "`annotations` must be words of one line that can be printed, not \"a\": \"x\\n- exec: []\""},
		"a terminal":   {func(e *model.RegisterEntry) { e.Annotations = map[string]string{"a\x1b[31m": "x"} }, "annotations", "`annotations` must be words of one line that can be printed, not \"a\\x1b[31m\": \"x\""},
		"no UTF-8":     {func(e *model.RegisterEntry) { e.Annotations = map[string]string{"a": "\xff"} }, "annotations", "`annotations` must be words of one line that can be printed, not \"a\": \"\\xff\""},
		"with a space": {func(e *model.RegisterEntry) { e.Address = "a b" }, "address", "`address` must be an IP address or a host name, not \"a b\""},
	} {
		e := entry()
		c.change(&e)
		first := entry()
		first.Service = "first"
		got := registration.Validate([]model.RegisterEntry{first, e})
		if len(got) != 1 || got[0].Property != "register_when_stable.1."+c.property || got[0].Error() != c.problem {
			t.Errorf("%s: got %+v\nwant %s", name, got, c.problem)
		}
	}
	got := registration.Validate([]model.RegisterEntry{entry(), entry()})
	if len(got) != 1 || got[0].Property != "register_when_stable.1" || got[0].Error() != "prod http shop 10.0.0.1 80 is registered twice (keep one of them)" {
		t.Errorf("twice: %+v", got)
	}
	short, long := entry(), entry()
	short.Address, long.Address = "fd00::1", "FD00:0::1"
	if got := registration.Validate([]model.RegisterEntry{short, long}); len(got) != 1 {
		t.Errorf("in two forms: %v", got)
	}
	if got := registration.Validate([]model.RegisterEntry{{}}); len(got) != 4 {
		t.Errorf("of nothing: %v", got)
	}
}

func TestAddresses(t *testing.T) {
	for _, address := range []string{"10.0.0.1", "fd00::1", "::1", "web01", "web01.example.net", "a-b.c", "1.example.net", "3com", "127.0.0.1", "10.0.0.x"} {
		e := entry()
		e.Address = address
		if got := registration.Validate([]model.RegisterEntry{e}); len(got) > 0 {
			t.Errorf("%s: %v", address, got)
		}
	}
}

func TestDefaults(t *testing.T) {
	want := registration.Registration{
		Protocol: model.ProtocolRegistration, Cluster: "prod", Service: "shop", ProtocolName: "http", Address: "10.0.0.1", Port: 80,
		Priority: 1, TTL: model.TTL(time.Minute), Node: "web01",
	}
	if got := registration.Of(entry(), "web01"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	e := entry()
	e.Address, want.Address = "WEB01.Example.net", "web01.example.net"
	if got := registration.Of(e, "web01"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	want.Address = "10.0.0.1"
	e, priority, ttl := entry(), 7, model.TTL(time.Hour)
	e.Priority, e.TTL, e.Annotations = &priority, &ttl, map[string]string{"a": "b"}
	want.Priority, want.TTL, want.Annotations = 7, ttl, e.Annotations
	if got := registration.Of(e, "web01"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// TestTimesToLive reads what manifests and documents write.
func TestTimesToLive(t *testing.T) {
	for text, want := range map[string]model.TTL{"never": model.Never, "3s": model.TTL(3 * time.Second), "24h": model.TTL(24 * time.Hour), "25h": model.TTL(25 * time.Hour), "8760h": model.TTL(8760 * time.Hour)} {
		var ttl model.TTL
		if err := ttl.UnmarshalText([]byte(text)); err != nil || ttl != want {
			t.Errorf("%s: %s, %v", text, ttl, err)
		}
		e := entry()
		e.TTL = &ttl
		if problems := registration.Validate([]model.RegisterEntry{e}); len(problems) > 0 {
			t.Errorf("%s: %v", text, problems)
		}
		written, err := ttl.MarshalText()
		var again model.TTL
		if err != nil || again.UnmarshalText(written) != nil || again != want {
			t.Errorf("%s is written %s, %v", text, written, err)
		}
	}
	for _, text := range []string{"", "Never", "forever", "-1s", "10"} {
		if err := new(model.TTL).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// TestServicesWithoutAPort are registered, and are no targets of Prometheus.
func TestServicesWithoutAPort(t *testing.T) {
	e := entry()
	e.Port = nil
	if problems := registration.Validate([]model.RegisterEntry{e, entry()}); len(problems) > 0 {
		t.Error(problems)
	}
	without, with := registration.Of(e, "web01"), registration.Of(entry(), "web01")
	if without.Port != 0 || without.Endpoint() != "10.0.0.1" || with.Endpoint() != "10.0.0.1:80" {
		t.Errorf("%+v", without)
	}
	if targets := registration.Targets([]registration.Registration{without, with}); len(targets) != 1 || targets[0].Targets[0] != "10.0.0.1:80" {
		t.Errorf("%+v", targets)
	}
	text, err := json.Marshal(registration.Targets([]registration.Registration{without}))
	if err != nil || string(text) != "[]" {
		t.Errorf("%s, %v", text, err)
	}
	text, err = json.Marshal(without)
	if err != nil || strings.Contains(string(text), "port") {
		t.Errorf("%s, %v", text, err)
	}
}
