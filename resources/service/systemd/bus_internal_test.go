package systemd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/musterfleet/muster/resources/host/units"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
)

// fakeBus is a systemd that answers its nth call with reply, as bytes; without any it hangs up.
func fakeBus(t *testing.T, reply func(n int, call *dbus.Message) []byte) bus {
	t.Helper()
	root := t.TempDir()
	path := filepath.Join(root, "run/systemd/private")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+path)
	ended := make(chan struct{})
	t.Cleanup(func() {
		_ = listener.Close()
		<-ended
	})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serve(conn, reply)
		}
	}()

	return bus{root: root, timeout: time.Minute}
}

func serve(conn net.Conn, reply func(int, *dbus.Message) []byte) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for n := -1; ; n++ {
		for n < 0 {
			line, err := in.ReadString('\n')
			switch line = strings.TrimSpace(line); {
			case err != nil:
				return
			case line == "BEGIN":
				n = 0
			case strings.HasSuffix(line, "AUTH"):
				_, _ = io.WriteString(conn, "REJECTED EXTERNAL\r\n")
			case strings.HasPrefix(line, "AUTH EXTERNAL"):
				_, _ = io.WriteString(conn, "OK 0123456789abcdef0123456789abcdef\r\n")
			default:
				_, _ = io.WriteString(conn, "ERROR\r\n")
			}
		}
		call, err := dbus.DecodeMessage(in)
		if err != nil {
			return
		}
		if call.Headers[dbus.FieldMember].Value() == "Hello" {
			_, _ = conn.Write(answer(call, dbus.TypeMethodReply, ":1.1"))
			n--
			continue
		}
		out := reply(n, call)
		if out == nil {
			return
		}
		_, _ = conn.Write(out)
	}
}

// answer encodes a reply to a call.
func answer(call *dbus.Message, kind dbus.Type, body ...any) []byte {
	m := dbus.Message{Type: kind, Headers: map[dbus.HeaderField]dbus.Variant{dbus.FieldReplySerial: dbus.MakeVariant(call.Serial())}, Body: body}
	if kind == dbus.TypeError {
		m.Headers[dbus.FieldErrorName] = dbus.MakeVariant("org.freedesktop.systemd1.NoSuchUnit")
	}
	if len(body) > 0 {
		m.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	var out bytes.Buffer
	if err := m.EncodeTo(&out, binary.LittleEndian); err != nil {
		panic(err)
	}
	// A message that was never sent has no number, which none may lack.
	out.Bytes()[8] = 1

	return out.Bytes()
}

// web are the properties of a unit that runs.
func web(id string) map[string]dbus.Variant {
	out := map[string]dbus.Variant{}
	for name, value := range map[string]any{
		"Id": id, "LoadState": "loaded", "ActiveState": "active", "UnitFileState": "enabled", "NeedDaemonReload": true, "CanReload": true,
		"ActiveEnterTimestampMonotonic": uint64(81276590), "Description": "of no use",
		"Job": struct {
			ID   uint32
			Path dbus.ObjectPath
		}{7, "/org/freedesktop/systemd1/job/7"},
	} {
		out[name] = dbus.MakeVariant(value)
	}

	return out
}

// TestBus reads more units than there are calls at a time, in the order of their names.
func TestBus(t *testing.T) {
	b := fakeBus(t, func(_ int, call *dbus.Message) []byte {
		path := string(call.Headers[dbus.FieldPath].Value().(dbus.ObjectPath))
		id := strings.NewReplacer("_2e", ".", "_40", "@", "_2d", "-").Replace(strings.TrimPrefix(path, units.UnitPath))
		return answer(call, dbus.TypeMethodReply, web(id))
	})
	var names []string
	for i := range 3 * inFlight {
		names = append(names, fmt.Sprintf("web-%d@x.service", i))
	}
	for _, names := range [][]string{names, names[:1], {}} {
		units, err := b.units(t.Context(), resource.Env{}, names)
		if err != nil || len(units) != len(names) {
			t.Fatalf("%d units of %d: %v", len(units), len(names), err)
		}
		for i, name := range names {
			want := unit{id: name, load: "loaded", active: "active", unitFile: "enabled", needReload: true, canReload: true, job: true, activeSince: 81276590 * time.Microsecond}
			if units[i] != want {
				t.Errorf("%s is %+v", name, units[i])
			}
		}
	}
	awaitDBus(t)
}

// awaitDBus waits until no goroutine of the library is left.
func awaitDBus(t *testing.T) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
		left := string(stacks[:runtime.Stack(stacks, true)])
		if !strings.Contains(left, "dbus.(*Conn)") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("goroutines are left:\n%s", left)
		}
	}
}

// known is a source that has its answer, and notes that it was asked.
type known struct{ asked *bool }

func (k known) units(context.Context, resource.Env, []string) ([]unit, error) {
	*k.asked = true

	return []unit{{id: "from systemctl"}, {id: "from systemctl"}}, nil
}

// TestNoBus has systemctl asked, with one answer for all services, where the bus has none.
func TestNoBus(t *testing.T) {
	with := func(change func(map[string]dbus.Variant)) func(int, *dbus.Message) []byte {
		return func(n int, call *dbus.Message) []byte {
			properties := web("web.service")
			if n == 1 {
				change(properties)
			}
			return answer(call, dbus.TypeMethodReply, properties)
		}
	}
	for name, reply := range map[string]func(int, *dbus.Message) []byte{
		"it hangs up": func(int, *dbus.Message) []byte { return nil },
		"it vanishes": func(n int, call *dbus.Message) []byte {
			return [][]byte{answer(call, dbus.TypeMethodReply, web("a.service")), nil}[n]
		},
		"an error":   func(_ int, call *dbus.Message) []byte { return answer(call, dbus.TypeError, "no such unit") },
		"nothing":    func(_ int, call *dbus.Message) []byte { return answer(call, dbus.TypeMethodReply) },
		"a text":     func(_ int, call *dbus.Message) []byte { return answer(call, dbus.TypeMethodReply, "loaded") },
		"no message": func(int, *dbus.Message) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") },
		"half a message": func(_ int, call *dbus.Message) []byte {
			return answer(call, dbus.TypeMethodReply, web("a.service"))[:40]
		},
		"to another question": func(int, *dbus.Message) []byte {
			return answer(new(dbus.Message), dbus.TypeMethodReply, web("a.service"))
		},
		"no id":               with(func(p map[string]dbus.Variant) { delete(p, "Id") }),
		"no state":            with(func(p map[string]dbus.Variant) { delete(p, "ActiveState") }),
		"a number for a text": with(func(p map[string]dbus.Variant) { p["UnitFileState"] = dbus.MakeVariant(uint64(65)) }),
		"a text for a truth":  with(func(p map[string]dbus.Variant) { p["NeedDaemonReload"] = dbus.MakeVariant("no") }),
		"a time before boot":  with(func(p map[string]dbus.Variant) { p["ActiveEnterTimestampMonotonic"] = dbus.MakeVariant(int64(-1)) }),
	} {
		t.Run(name, func(t *testing.T) {
			b := fakeBus(t, reply)
			b.timeout = time.Second
			check(t, b)
		})
	}
	t.Run("no socket", func(t *testing.T) {
		t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/no/such/socket")
		check(t, bus{root: t.TempDir(), timeout: time.Minute})
	})
	t.Run("offline", func(t *testing.T) {
		b := fakeBus(t, with(func(map[string]dbus.Variant) {}))
		if _, err := b.units(t.Context(), resource.Env{}, []string{"a", "b"}); err != nil {
			t.Fatal(err)
		}
		t.Setenv("SYSTEMD_OFFLINE", "1")
		check(t, b)
	})
	t.Run("a chroot", func(t *testing.T) {
		b := fakeBus(t, with(func(map[string]dbus.Variant) {}))
		if err := os.MkdirAll(filepath.Join(b.root, "proc/1/root"), 0o755); err != nil {
			t.Fatal(err)
		}
		check(t, b)
	})
}

// check reads two units that are unknown to the bus.
func check(t *testing.T, b bus) {
	t.Helper()
	asked := false
	var log bytes.Buffer
	debug := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	p := &reader{sources: []source{b, known{&asked}}, mu: make(mutex, 1)}
	units, err := p.show(t.Context(), resource.Env{Log: debug}, []string{"a.service", "b.service"})
	if !strings.Contains(log.String(), "source=D-Bus") {
		t.Errorf("logged: %s", &log)
	}
	if err != nil || !asked || slices.ContainsFunc(units, func(u unit) bool { return u != unit{id: "from systemctl"} }) || len(units) != 2 {
		t.Errorf("asked systemctl: %t; %+v, %v", asked, units, err)
	}
	awaitDBus(t)
}

// TestSilentBus ends with its context, and systemctl is not asked after that.
func TestSilentBus(t *testing.T) {
	mute := func(int, *dbus.Message) []byte { return []byte{} }
	enough := errors.New("enough")
	for name, end := range map[string]func(ctx context.Context, called <-chan struct{}) (context.Context, context.CancelFunc){
		"its time is used up": func(ctx context.Context, _ <-chan struct{}) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, 50*time.Millisecond, enough)
		},
		"it is stopped": func(ctx context.Context, called <-chan struct{}) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			go func() { <-called; cancel(enough) }()
			return ctx, func() { cancel(nil) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			called := make(chan struct{}, 1000)
			b := fakeBus(t, func(n int, call *dbus.Message) []byte { called <- struct{}{}; return mute(n, call) })
			ctx, cancel := end(t.Context(), called)
			defer cancel()
			asked := false
			p := &reader{sources: []source{b, known{&asked}}, mu: make(mutex, 1)}
			units, err := p.show(ctx, resource.Env{Log: hosttest.Log(t)}, []string{"a.service"})
			if !errors.Is(err, enough) || asked || units != nil {
				t.Errorf("asked systemctl: %t; %+v, %v", asked, units, err)
			}
			awaitDBus(t)
		})
	}
	t.Run("it does not even greet", func(t *testing.T) {
		root := t.TempDir()
		path := filepath.Join(root, "run/systemd/private")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+path)
		check(t, bus{root: root, timeout: 50 * time.Millisecond})
	})
}
