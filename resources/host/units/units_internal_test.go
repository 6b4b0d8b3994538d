package units

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// manager is a systemd with one unit, web.service with the alias app.service. Tests set its answers.
type manager struct {
	root, path string
	listener   net.Listener
	serving    sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
	// hangs makes it silent, from the greeting or the first call on.
	hangs bool
	// accepted counts connections, asked the questions for the name of a unit.
	accepted, asked int
	// subscribed gets one for each connection that is to have signals.
	subscribed chan net.Conn
}

func newManager(t *testing.T) *manager {
	root := t.TempDir()
	m := &manager{root: root, path: filepath.Join(root, "run/systemd/private"), subscribed: make(chan net.Conn, 100)}
	if err := os.MkdirAll(filepath.Dir(m.path), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+m.path)
	m.start(t)
	t.Cleanup(m.stop)

	return m
}

func (m *manager) start(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("unix", m.path)
	if err != nil {
		t.Fatal(err)
	}
	m.listener = listener
	m.serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			m.mu.Lock()
			m.conns = append(m.conns, conn)
			m.accepted++
			m.mu.Unlock()
			m.serving.Go(func() { m.serve(conn) })
		}
	})
}

// hang has it answer nothing any more, or everything again.
func (m *manager) hang(hangs bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hangs = hangs
}

func (m *manager) isHanging() bool {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.hangs
}

// counts returns how many connections were made, and how often it was asked for a name.
func (m *manager) counts() (accepted, asked int) {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.accepted, m.asked
}

// stop ends it, with all connections.
func (m *manager) stop() {
	_ = m.listener.Close()
	m.mu.Lock()
	for _, conn := range m.conns {
		_ = conn.Close()
	}
	m.conns = nil
	m.mu.Unlock()
	m.serving.Wait()
}

func (m *manager) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for begun := false; !begun; {
		line, err := in.ReadString('\n')
		switch line = strings.TrimSpace(line); {
		case err != nil:
			return
		case m.isHanging():
		case line == "BEGIN":
			begun = true
		case strings.HasSuffix(line, "AUTH"):
			_, _ = io.WriteString(conn, "REJECTED EXTERNAL\r\n")
		case strings.HasPrefix(line, "AUTH EXTERNAL"):
			_, _ = io.WriteString(conn, "OK 0123456789abcdef0123456789abcdef\r\n")
		default:
			_, _ = io.WriteString(conn, "ERROR\r\n")
		}
	}
	for {
		call, err := dbus.DecodeMessage(in)
		if err != nil {
			return
		}
		var body []any
		switch member, _ := call.Headers[dbus.FieldMember].Value().(string); {
		case member == "Hello":
			body = []any{":1.1"}
		case member == "Get" && call.Body[1] == "Id":
			m.mu.Lock()
			m.asked++
			m.mu.Unlock()
			body = []any{dbus.MakeVariant("web.service")}
		case member == "Get":
			body = []any{dbus.MakeVariant("252")}
		}
		if m.isHanging() {
			continue
		}
		reply := dbus.Message{Type: dbus.TypeMethodReply, Headers: map[dbus.HeaderField]dbus.Variant{dbus.FieldReplySerial: dbus.MakeVariant(call.Serial())}, Body: body}
		send(conn, reply)
		if member := call.Headers[dbus.FieldMember].Value(); member == "Subscribe" || member == "Get" && call.Body[1] == "Version" {
			m.subscribed <- conn
		}
	}
}

func send(conn net.Conn, m dbus.Message) {
	if len(m.Body) > 0 {
		m.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(m.Body...))
	}
	var out bytes.Buffer
	if err := m.EncodeTo(&out, binary.LittleEndian); err != nil {
		panic(err)
	}
	// A message that was never sent has no number, which none may lack.
	out.Bytes()[8] = 1
	_, _ = conn.Write(out.Bytes())
}

func signal(conn net.Conn, path dbus.ObjectPath, iface, member string, body ...any) {
	send(conn, dbus.Message{Type: dbus.TypeSignal, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldPath: dbus.MakeVariant(path), dbus.FieldInterface: dbus.MakeVariant(iface), dbus.FieldMember: dbus.MakeVariant(member),
	}, Body: body})
}

// state sends the state of a unit.
func state(conn net.Conn, unit, active string) {
	properties := map[string]dbus.Variant{"ActiveState": dbus.MakeVariant(active), "SubState": dbus.MakeVariant(active)}
	signal(conn, ObjectPath(unit), "org.freedesktop.DBus.Properties", "PropertiesChanged", UnitInterface, properties, []string{})
}

// counted is a wake that is counted.
func counted() (wakes chan struct{}, wake func()) {
	wakes = make(chan struct{}, 1000)

	return wakes, func() { wakes <- struct{}{} }
}

func await[T any](t *testing.T, c <-chan T, what string) (got T) {
	t.Helper()
	select {
	case got = <-c:
	case <-time.After(20 * time.Second):
		t.Fatal("waited in vain: " + what)
	}

	return got
}

// TestUnits wakes only for messages about the watched units.
func TestUnits(t *testing.T) {
	m := newManager(t)
	w := NewWatcher(slog.New(slog.DiscardHandler), m.root)
	defer w.Close()
	web, wakeWeb := counted()
	app, wakeApp := counted()
	first, err := w.Arm("web.service", wakeWeb)
	if err != nil {
		t.Fatal(err)
	}
	second, err := w.Arm("app.service", wakeApp)
	if err != nil {
		t.Fatal(err)
	}
	conn := await(t, m.subscribed, "a connection")
	none := func(what string) {
		t.Helper()
		// The next message arrives next.
		state(conn, "web.service", what)
		await(t, web, what)
		await(t, app, what)
		if len(web)+len(app) > 0 {
			t.Errorf("woken %d and %d times too often: %s", len(web), len(app), what)
		}
	}
	none("the first state")
	state(conn, "web.service", "the first state")
	state(conn, "other.service", "failed")
	none("the same state, and another unit")
	signal(conn, ObjectPath("web.service"), "org.freedesktop.DBus.Properties", "PropertiesChanged", "org.freedesktop.systemd1.Service", map[string]dbus.Variant{"ActiveState": dbus.MakeVariant("x")}, []string{})
	signal(conn, ObjectPath("web.service"), "org.freedesktop.DBus.Properties", "PropertiesChanged", UnitInterface, map[string]dbus.Variant{"Job": dbus.MakeVariant("x")}, []string{})
	signal(conn, ObjectPath("web.service"), "org.freedesktop.DBus.Properties", "PropertiesChanged")
	signal(conn, ManagerPath, ManagerInterface, "UnitNew", "web.service", ObjectPath("web.service"))
	signal(conn, ManagerPath, ManagerInterface, "Reloading", true)
	none("other properties, and a unit that was loaded")
	for what, body := range map[string][]any{"UnitFilesChanged": nil, "Reloading": {false}} {
		signal(conn, ManagerPath, ManagerInterface, what, body...)
		await(t, web, what)
		await(t, app, what)
	}
	none("after all files were read")
	if first.Err() != nil || second.Err() != nil {
		t.Errorf("%v, %v", first.Err(), second.Err())
	}
	second.Close()
	state(conn, "web.service", "alone")
	await(t, web, "the first is still there")
	if len(app) != 0 {
		t.Error("who closed was woken")
	}
	first.Close()
	first.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is used without anybody who wants it")
	}
}

// TestUnitsAgain ends systemd and starts it again.
func TestUnitsAgain(t *testing.T) {
	m := newManager(t)
	w := NewWatcher(slog.New(slog.DiscardHandler), m.root)
	defer w.Close()
	wakes, wake := counted()
	x, err := w.Arm("web.service", wake)
	if err != nil {
		t.Fatal(err)
	}
	conn := await(t, m.subscribed, "a connection")
	state(conn, "web.service", "active")
	await(t, wakes, "a state")
	m.stop()
	await(t, wakes, "there is no systemd")
	if !errors.Is(x.Err(), ErrNone) {
		t.Error(x.Err())
	}
	if _, err := w.Arm("other.service", wake); !errors.Is(err, ErrNone) {
		t.Errorf("without systemd: %v", err)
	}
	m.start(t)
	conn = await(t, m.subscribed, "another connection")
	await(t, wakes, "it is there again")
	if x.Err() != nil {
		t.Error(x.Err())
	}
	// The last state came from another systemd.
	state(conn, "web.service", "active")
	await(t, wakes, "a state of the new one")
	w.Close()
	if !errors.Is(x.Err(), ErrClosed) {
		t.Error(x.Err())
	}
	if _, err := w.Arm("other.service", wake); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	x.Close()
}

// impatient returns a watcher that waits a moment for answers of systemd.
func impatient(t *testing.T, m *manager) *Watcher {
	w := NewWatcher(slog.New(slog.DiscardHandler), m.root)
	w.answerTime = 100 * time.Millisecond
	t.Cleanup(w.Close)

	return w
}

// none checks that a unit cannot be watched.
func none(t *testing.T, w *Watcher, name string) {
	t.Helper()
	if _, err := w.Arm(name, nil); !errors.Is(err, ErrNone) {
		t.Errorf("%s: %v", name, err)
	}
}

// TestUnitsOfASystemdThatHangs are refused without waiting for it again: an agent with
// a hundred services waits once.
func TestUnitsOfASystemdThatHangs(t *testing.T) {
	m := newManager(t)
	m.hang(true)
	w := impatient(t, m)
	for range 5 {
		none(t, w, "web.service")
	}
	if accepted, _ := m.counts(); accepted != 1 {
		t.Errorf("%d tries to connect, want one", accepted)
	}
	w.mu.Lock()
	w.retry = time.Time{}
	w.mu.Unlock()
	m.hang(false)
	w.answerTime = answerTime
	wakes, wake := counted()
	if _, err := w.Arm("web.service", wake); err != nil {
		t.Fatal(err)
	}
	state(await(t, m.subscribed, "a connection"), "web.service", "active")
	await(t, wakes, "a state")
}

// TestUnitsOfASystemdThatBeginsToHang close their connection and open another.
func TestUnitsOfASystemdThatBeginsToHang(t *testing.T) {
	m := newManager(t)
	w := NewWatcher(slog.New(slog.DiscardHandler), m.root)
	t.Cleanup(w.Close)
	wakes, wake := counted()
	x, err := w.Arm("web.service", wake)
	if err != nil {
		t.Fatal(err)
	}
	conn := await(t, m.subscribed, "a connection")
	m.hang(true)
	w.mu.Lock()
	w.signals.answerTime = 100 * time.Millisecond
	w.mu.Unlock()
	for range 5 {
		none(t, w, "app.service")
	}
	if _, asked := m.counts(); asked != 2 {
		t.Errorf("it was asked for %d names, want one of them in vain", asked)
	}
	if !errors.Is(x.Err(), ErrNone) {
		t.Errorf("the unit that was watched: %v", x.Err())
	}
	m.hang(false)
	again := await(t, m.subscribed, "another connection")
	for x.Err() != nil {
		await(t, wakes, "it answers again")
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || again == conn {
		t.Error("the former connection is still used")
	}
}
