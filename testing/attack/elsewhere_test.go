package attack

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// elsewhere is an attack on readers. A test beside the reader runs it.
type elsewhere struct {
	name, does, never string
	// tests are package.Test.
	tests []string
}

func triedElsewhere() []elsewhere {
	return []elsewhere{
		{"server-error", "is the server, or sits between server and client, and sends unknown errors", "a connection ends for good",
			[]string{"kvstore/connect.TestErrorsThatNobodyKnows", "cmd/muster/agentcmd.TestAConnectionClosedForGoodEndsTheAgent"}},
		{"state-large", "fills the 512 KiB of the state of a node, with versions, groups, manifests and reasons", "commands fill the disk or terminal of an operator, or compute for minutes",
			[]string{"cmd/muster/fleetcmd.TestOneNodeDoesNotFillTheDisk", "cmd/muster/print.TestOneCellDoesNotPadAllRows", "fleet.TestLongReasonsAreCut", "fleet.TestCostOfALargeState"}},
		{"serve-credentials", "has the credentials of `fleet serve`, with actions, and assigns, labels, queues requests, stores states", "a write other than a pause succeeds",
			[]string{"kvstore/provision.TestDashboardIsAViewer", "kvstore/provision.TestDashboardWritesOnlyPauses"}},
		{"requester-beyond", "has the credentials of `fleet serve` with `--actions --requests run,preview`, and uses other verbs, assigns, labels, queues requests, stores states, sends further JetStream requests, subscribes to subjects of others; each is a line", "any of it is permitted",
			[]string{"kvstore/provision.TestRequesterMayDoNothingElse"}},
		{"requester-verb", "has the credentials of `fleet serve` with `--requests run`, and sends previews to nodes", "it is permitted",
			[]string{"kvstore/provision.TestRequesterOfOneVerb"}},
		{"requester-answers", "listens while an administrator sends requests; or is a requested node that answers in the name of another, directly or through answers of the server", "a requester hears answers to others, or accepts an answer of another node",
			[]string{"kvstore/provision.TestAnswersReachWhoAsked", "kvstore/provision.TestAnswersDoNotLeaveTheAccount"}},
		{"requester-courier", "has the credentials of `fleet serve` with requests, and directs answers of the server to subjects of nodes, on one server and on three", "a node accepts an answer as a request, or gets it on another subject",
			[]string{"kvstore/provision.TestAnswersAreNoRequests"}},
		{"requester-reply", "has the credentials of `fleet serve` with requests, and names states, facts, reports, registrations and answers of nodes as reply subject of a run", "a node publishes there",
			[]string{"kvstore/provision.TestNodesAnswerNowhereElse"}},
		{"requester-flood", "has the credentials of `fleet serve` with `--requests run`, and sends runs without end, also during a long one", "the node forgets an executed queued request, or its memory, disk or reports fill",
			[]string{"agent/requests.TestRunsDisplaceNoCommands", "agent/requests.TestManyRunsAreBounded", "agent/requests.TestTheSamePreviewIsBounded"}},
		{"status-unsigned", "sends `status` requests, which are never signed: for a local manifest whose guards use the data of the request, for other files as manifests or, with suitable delimiters, as templates, and for templates at a URL", "a node that requires signatures runs a guard, shows the content of a file, or fetches templates",
			[]string{"agent.TestTrustOfStatusRequests"}},
		{"cancel-forged", "sends and queues cancels: unsigned; with other keys; for other actions, nodes, groups and fleets; from the future; expired; and with the signature of a request", "a node that requires signatures cancels or executes a request",
			[]string{"agent.TestTrustOfCancels"}},
		{"cancel-flood", "cancels more unknown request ids than a node remembers", "a node forgets executed requests, or fills its disk",
			[]string{"agent/requests.TestManyEarlyCancelsAreBounded"}},
		{"message-repeated", "repeats a signed request or cancel without limit, without the key", "an agent stores an answer or writes to the disk for each",
			[]string{"agent/requests.TestTheSameMessagesAreBounded"}},
		{"preview-signed-elsewhere", "has a token of the role operate, or write access to an assignment with guards that an operator previews on the dashboard", "a node that requires signatures runs the guards with the key of serve, unless `--sign-previews` is set",
			[]string{"testing/e2e.TestSignedActions"}},
		{"preview-by-link", "lures an operator to the dashboard with a link, or sends forms from another site", "a manifest is filled in, or an action starts",
			[]string{"fleet/web.TestALinkWritesNoManifest", "fleet/web.TestOtherSitesCannotAct"}},
		{"nodes-swapped", "moves its node to another group between the confirmation page and the form", "an operator acts on a node that the page did not show",
			[]string{"fleet/ask.TestTheSameNodes", "fleet/web.TestOnlyTheNodesThatWereShown"}},
		{"plan-read", "has a token of the role read, or had one of the role operate, and opens a preview by page, stream and API", "it sees the contents of previewed files",
			[]string{"fleet/web.TestReadersSeeNoPlans", "fleet/web/api.TestReadersSeeNoPlans", "fleet/web/access.TestStreamsEndWithTheirToken"}},
		{"places-held", "has a token of the role operate, and starts runs of ten minutes without end", "other operators cannot act or cancel",
			[]string{"fleet/ask.TestPlacesAreShared", "fleet/ask.TestCancel"}},
		{"author-forged", "writes assignments with names of any length and characters in their headers", "a name is trusted, or breaks the page",
			[]string{"kvstore.TestAuthor", "fleet/web.TestHostileNodes"}},
		{"plan-large", "answers a preview with 256 KiB of empty transactions", "fleet serve stores tens of megabytes for each",
			[]string{"fleet/ask.TestPlansAreBounded", "fleet/ask.TestShortPlansFillNoMemory"}},
		{"answer-empty", "answers a request with 340,000 empty runs or changes", "fleet serve or a command uses 70 MiB for 1 MiB",
			[]string{"fleet/ask.TestShortAnswersFillNoMemory"}},
		{"answer-unasked", "sees a request to another node, and answers under its name", "it is listed in the results, or is awaited",
			[]string{"fleet/ask.TestNodesThatWereNotAsked", "fleet/ask.TestACancelSaysNothingOfNodes"}},
		{"report-future", "reports more than 50,000 events with future times", "the history of its node omits actions of operators",
			[]string{"fleet/assign.TestFutureReportsDisplaceNothing"}},
		{"report-resources", "reports resources and manifests without end", "a query fills the memory of an operator, or omits data of others",
			[]string{"fleet/view.TestOneNodeFillsNoMemory"}},
		{"facts-unreadable", "stores facts with unreadable headers", "fleet forget fails, for this node or others",
			[]string{"kvstore.TestFactsWithHeadersAreInvalid"}},
		{"node-forgotten", "has the credentials of a viewer, or of an operator of some nodes, and removes states, facts and reports of a node", "a node disappears from the lists of others, or its reports from the stream",
			[]string{"kvstore/provision.TestOnlyAdministratorsForgetNodes"}},
		{"groups-forged", "writes groups of a node without a trusted key, replays signed ones, deletes them", "a node that requires signatures joins or leaves a group",
			[]string{"agent.TestSignedGroups"}},
		{"answer-without-end", "is the receiver of a webhook or the provider of OpenID Connect, and switches protocols, which ends all time limits", "later deliveries wait, or `fleet serve` cannot be stopped",
			[]string{"fleet/webhook.TestReceiverThatSwitchesProtocols", "fleet/web/access.TestProviderThatSwitchesProtocols"}},
		{"failure-twice", "answers a request with a failure, and never finishes it", "it counts as two nodes, and ends the batches of others",
			[]string{"fleet/ask.TestFailuresCountNodes"}},
		{"report-id-long", "publishes reports with ids of 60 KB", "a command that follows them fills the memory of an operator",
			[]string{"fleet/view.TestLongIDsFillNoMemory"}},
		{"report-long", "publishes run summaries with 20,000 unchanged failures", "a command computes for seconds for each",
			[]string{"fleet/view.TestSummariesAreNoLongerThanReports"}},
		{"webhook-flood", "reports faster than a receiver of webhooks accepts", "reports of other nodes arrive hours late",
			[]string{"fleet/webhook.TestWebhookOfAFlood", "fleet/webhook.TestWebhookLogOfAFloodIsBounded"}},
		{"webhook-refused", "reports events that a receiver of webhooks refuses", "reports of other nodes wait for each retry, or the log has two lines per report",
			[]string{"fleet/webhook.TestWebhookOfRefusedReports", "fleet/webhook.TestTriesOfRefusedReportsCount"}},
		{"report-batch", "publishes batches of 30,000 invalid reports", "a command that reads them prints a line for each",
			[]string{"kvstore.TestInvalidReportsOfABatchAreOneError"}},
		{"server-future", "is the server, and dates a stored value years ahead", "the node considers values of another server older",
			[]string{"kvstore/watch.TestATimeInTheFutureHoldsUpNothing"}},
		{"state-unreadable", "stores an unreadable state of its node", "the node disappears from the lists of operators, or counts as up to date",
			[]string{"testing/e2e.TestANodeWithAnUnreadableStateStays", "kvstore.TestNodesSayWhoTheyAre", "fleet.TestUnreadableNodesAreNotDone"}},
		{"header-many", "stores many messages with more headers than clients read", "other keys, requests or nodes wait for it",
			[]string{"kvstore/watch.TestHeadersThatAreTooManyHoldUpNothing", "kvstore/requests.TestCommandsWithTooManyHeadersHoldUpNothing", "agent.TestManyUnreadableKeysAreReportedTogether"}},
		{"bundle-hidden", "prepares a bundle for a signer: with unusual kinds of entries, names and modes, empty entries, an entry with the name of the terms", "nodes unpack files that were not shown, or other contents",
			[]string{"testing/e2e.TestSignShowsWhatNodesUnpack", "testing/e2e.TestFilesHideNoTerms", "testing/e2e.TestASecondSignerSeesTheContent", "resources/host/archive.TestListIsWhatUnpackLeaves", "fleet/assign.TestDiffShowsEachChange", "fleet/assign.TestNamesAreLines"}},
		{"bundle-bomb", "stores a small bundle that unpacks to a huge size, or to many files", "commands of an operator hang or fill the memory",
			[]string{"testing/e2e.TestABombHangsNoCommand", "resources/host/archive.TestListEnds", "fleet/assign.TestTextsAreBounded", "fleet/assign.TestRefusedBundle"}},
		{"queue-unreadable", "queues requests, and one with unreadable headers after them", "nodes read all of them repeatedly",
			[]string{"kvstore/requests.TestHandledCommandsAreNotReadAgain"}},
		{"request-panic", "sends and queues requests that make parsers panic, with and without `trust.keys`", "an agent ends, now or at its next start, or reports it again",
			[]string{"agent.TestRequestsThatParsersPanicOn", "agent/requests.TestAPanicEndsOneRequest", "cmd/muster/agentcmd.TestAPanicEndsOneAnswer"}},
		{"value-two-readings", "puts assignments that other parsers read differently: line ends of YAML 1.1, keys in other case, duplicate keys, merge keys", "operators see, compare or sign another value than nodes run",
			[]string{"fleet/assign.TestWhatIsShownIsWhatNodesRun", "testing/e2e.TestSignRefusesWhatNodesReject"}},
	}
}

// TestElsewhere: each of those tests exists.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	for _, row := range triedElsewhere() {
		for _, test := range row.tests {
			folder, name, _ := strings.Cut(test, ".")
			files, err := filepath.Glob(filepath.Join("..", "..", folder, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(files, func(file string) bool {
				source, err := os.ReadFile(file)
				return err == nil && strings.Contains(string(source), "\nfunc "+name+"(t *testing.T)")
			}) {
				t.Errorf("%s: there is no test %s", row.name, test)
			}
		}
	}
}
