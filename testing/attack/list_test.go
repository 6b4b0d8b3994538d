package attack

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const signatures = "who may write to the bucket of assignments and has no trusted key prepares what an operator signs: deletions that hold an assignment, envelopes for other keys, fleets and times, " +
	"revisions of the history to go back to, values that no node uses, a bundle that is gone or has what is not shown, a push between look and signature, older values put back. " +
	"Nothing is signed that was not shown, nothing newer is reverted, and nothing replayed is taken for what is in force."

// TestListed compares attacks.md with the table. MUSTER_ATTACK=list writes it.
func TestListed(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# Attacks\n\nWritten by `MUSTER_ATTACK=list go test ./testing/attack -run TestListed`. Each is run as a node, as a viewer, as an operator of one\n" +
		"group and as a dashboard that pauses nodes and has them run and preview, in accounts by configuration and by JWT, on one server and on three, and as users of a second fleet on the same server:\n`go test ./testing/attack -run TestNode//<name>`. Each wins in a control: `-run TestControls/<name>`.\n\n" +
		"| name | someone with the credentials | never |\n|---|---|---|\n")
	for _, row := range attacks() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", row.name, row.does, row.never)
		for user, why := range row.known {
			fmt.Fprintf(&b, "| | the %s wins today | %s |\n", user, why)
		}
	}
	b.WriteString("\nTried where it is read, by the tests named:\n\n| name | someone with the credentials, or the server | never | tests |\n|---|---|---|---|\n")
	for _, row := range triedElsewhere() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` |\n", row.name, row.does, row.never, strings.Join(row.tests, "`, `"))
	}
	b.WriteString("\n`TestLeafNodesHold`: " + leafNodes + "\n")
	b.WriteString("\n`TestMessageIDsAreForgotten`: " + messageIDs + "\n")
	b.WriteString("\n`TestLastMessageIDEndsReplicatedStream`: " + lastMessageID + "\n")
	b.WriteString("\n`TestSignSignsWhatItShows`, `TestSignTakesNoTimesOfOthers`, `TestRollbackSignsWhatItShows` and others of `testing/e2e/signing_test.go`: " + signatures + "\n")
	const file = "attacks.md"
	if os.Getenv("MUSTER_ATTACK") == "list" {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != b.String() {
		t.Errorf("%s is not of the table: run MUSTER_ATTACK=list go test ./testing/attack -run TestListed (%v)", file, err)
	}
}
