package fleetcmd

import (
	"fmt"
	"strings"
	"testing"
)

// TestShortAnswersFillNoMemory: an answer that leaves out what nodes always write is invalid where it would be
// much longer with that; one of many runs, as nodes send it, is not.
func TestShortAnswersFillNoMemory(t *testing.T) {
	t.Parallel()
	many := strings.Repeat(",{}", 340_000)
	for _, text := range []string{`{"runs":[{}` + many + `]}`, `{"state":{"changes":[{}` + many + `]}}`} {
		if out, err := decodeResponse([]byte(text)); err == nil || len(out.Runs) > 0 || out.State != nil {
			t.Errorf("%.30s: %v", text, err)
		}
	}
	var runs []string
	for i := range 500 {
		runs = append(runs, fmt.Sprintf(`{"manifest":"group.all.m%d"}`, i))
	}
	if out, err := decodeResponse([]byte(`{"runs":[` + strings.Join(runs, ",") + `]}`)); err != nil || len(out.Runs) != 500 {
		t.Errorf("%d runs, %v", len(out.Runs), err)
	}
}
