package print

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"regexp"
	"testing"

	"github.com/coreos/go-systemd/v22/journal"

	"github.com/musterfleet/muster/model"
)

// TestJournalFields has a field for each attribute, and the line of text as the message.
func TestJournalFields(t *testing.T) {
	type record struct {
		message  string
		priority journal.Priority
		fields   map[string]string
	}
	var sent []record
	var refused error
	var lines bytes.Buffer
	level := &slog.LevelVar{}
	log := slog.New(&journalHandler{lines: newLines(&lines, level), send: func(message string, p journal.Priority, fields map[string]string) error {
		sent = append(sent, record{message, p, fields})
		return refused
	}})
	with := log.With("manifest", "node.web01.motd").WithGroup("a")
	ctx := model.WithRef(context.Background(), model.Ref{Type: "file", Name: "/etc/motd"})
	with.ErrorContext(ctx, "file#/etc/motd failed\n", "run-id", 7, slog.Group("b", "c", errors.New("no\nroom")))
	log.Debug("not sent")
	level.Set(slog.LevelDebug)
	log.Debug("sent")
	log.Warn("w")
	log.Info("i")
	want := []record{
		{`file#/etc/motd failed\u000a manifest=node.web01.motd a.run-id=7 a.b.c="no\nroom"`, journal.PriErr, map[string]string{
			"SYSLOG_IDENTIFIER": "muster", "MUSTER_RESOURCE": "file#/etc/motd", "MUSTER_MANIFEST": "node.web01.motd", "MUSTER_A_RUN_ID": "7", "MUSTER_A_B_C": "no\nroom",
		}},
		{"sent", journal.PriDebug, map[string]string{"SYSLOG_IDENTIFIER": "muster"}},
		{"w", journal.PriWarning, map[string]string{"SYSLOG_IDENTIFIER": "muster"}},
		{"i", journal.PriInfo, map[string]string{"SYSLOG_IDENTIFIER": "muster"}},
	}
	if !reflect.DeepEqual(sent, want) {
		t.Errorf("sent %+v,\nwant %+v", sent, want)
	}
	if lines.Len() > 0 {
		t.Errorf("written %q", lines.String())
	}
	refused = errors.New("no journal")
	log.Warn("kept", "a", 1)
	if lines.String() != "WARN  kept a=1\n" {
		t.Errorf("what the journal does not take is %q", lines.String())
	}
}

// TestServiceLogHasTimes begins lines with the time, also if systemd sets JOURNAL_STREAM for standard output only.
func TestServiceLogHasTimes(t *testing.T) {
	want := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d) WARN  w a=1\n$`)
	for _, stream := range []string{"", "8:1"} {
		t.Setenv("JOURNAL_STREAM", stream)
		var out bytes.Buffer
		NewServiceLogger(&out, "text", slog.LevelInfo).With("a", 1).Warn("w")
		if !want.Match(out.Bytes()) {
			t.Errorf("with the stream %q the log is %q", stream, out.String())
		}
	}
}
