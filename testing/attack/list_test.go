package attack

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const signatures = "a user with write access to the bucket of assignments and without a trusted key prepares values for an operator to sign: deletions that contain an " +
	"assignment, envelopes for other keys, fleets and times, old revisions to roll back to, values that nodes refuse, a bundle that is missing or has " +
	"unseen contents, a push between preview and signature, older values. The operator signs only the shown value. No newer value is reverted, and no " +
	"replayed value becomes active."

// TestListed compares attacks.md with the table. MUSTER_ATTACK=list writes it.
func TestListed(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# Attacks\n\nWritten by `MUSTER_ATTACK=list go test ./testing/attack -run TestListed`. A node, a viewer, an operator of one group\n" +
		"and a dashboard with actions run each attack: in accounts by configuration and by JWT, on one server and on three, and as users of a second fleet on the same server:\n`go test ./testing/attack -run TestNode//<name>`. Each attack wins in a control: `-run TestControls/<name>`.\n\n" +
		"| name | someone with the credentials | never |\n|---|---|---|\n")
	for _, row := range attacks() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", row.name, row.does, row.never)
		for user, why := range row.known {
			fmt.Fprintf(&b, "| | the %s wins today | %s |\n", user, why)
		}
	}
	b.WriteString("\nTests beside the readers try these:\n\n| name | someone with the credentials, or the server | never | tests |\n|---|---|---|---|\n")
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
