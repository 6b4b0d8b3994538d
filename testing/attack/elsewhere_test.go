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
		{"server-error", "is the server, or between it and a client, and sends errors that no client knows", "a connection ends for good",
			[]string{"kvstore/connect.TestErrorsThatNobodyKnows", "cmd/muster/agentcmd.TestAConnectionClosedForGoodEndsTheAgent"}},
		{"state-large", "fills the 512 KiB of the state of a node, with versions, groups, manifests and reasons", "commands fill the disk or terminal of an operator, or compute for minutes",
			[]string{"cmd/muster/fleetcmd.TestOneNodeDoesNotFillTheDisk", "cmd/muster/print.TestOneCellDoesNotPadAllRows", "fleet.TestLongReasonsAreCut", "fleet.TestCostOfALargeState"}},
		{"serve-credentials", "has the credentials of `fleet serve`, with actions, and assigns, labels, queues requests, stores states", "anything is written but pauses",
			[]string{"kvstore/provision.TestDashboardIsAViewer", "kvstore/provision.TestDashboardWritesOnlyPauses"}},
		{"requester-beyond", "has the credentials of `fleet serve` with `--actions --requests run,preview`, and asks nodes by other verbs, assigns, labels, queues requests, stores states, asks JetStream for more than it needs, subscribes to what is for others, a line each", "any of it is permitted",
			[]string{"kvstore/provision.TestRequesterMayDoNothingElse"}},
		{"requester-verb", "has the credentials of `fleet serve` with `--requests run`, and asks nodes to preview", "it is permitted",
			[]string{"kvstore/provision.TestRequesterOfOneVerb"}},
		{"requester-answers", "listens while an administrator asks; or is a node that is asked, and answers in the name of another, by itself or by what the server answers to it", "a requester hears what others are answered, or takes an answer for that of another node",
			[]string{"kvstore/provision.TestAnswersReachWhoAsked", "kvstore/provision.TestAnswersDoNotLeaveTheAccount"}},
		{"requester-courier", "has the credentials of `fleet serve` with requests, and names where nodes listen as where the server is to send its answers, on one server and on three", "a node takes one for a request, or is reached elsewhere than where it may be asked",
			[]string{"kvstore/provision.TestAnswersAreNoRequests"}},
		{"requester-reply", "has the credentials of `fleet serve` with requests, and names states, facts, reports, registrations and answers of nodes as where a node is to answer a run", "a node that runs muster writes there",
			[]string{"kvstore/provision.TestNodesAnswerNowhereElse"}},
		{"requester-flood", "has the credentials of `fleet serve` with `--requests run`, and has a node run ever more requests, also while one takes long", "the node forgets a queued command that it executed, or its memory, disk or reports fill",
			[]string{"agent/requests.TestRunsDisplaceNoCommands", "agent/requests.TestManyRunsAreBounded", "agent/requests.TestTheSamePreviewIsBounded"}},
		{"cancel-forged", "sends and queues cancels: unsigned, by other keys, for other actions, nodes, groups and fleets, of the future and expired; and cancels that are signed as requests", "a node that demands signatures cancels a request, or executes one",
			[]string{"agent.TestTrustOfCancels"}},
		{"cancel-flood", "cancels more ids than a node remembers, of requests that never come", "a node forgets what it executed, or fills its disk",
			[]string{"agent/requests.TestManyEarlyCancelsAreBounded"}},
		{"message-repeated", "repeats a signed request, or a signed cancel, any number of times, without the key", "an agent keeps an answer for each, or writes to the disk for each",
			[]string{"agent/requests.TestTheSameMessagesAreBounded"}},
		{"preview-signed-elsewhere", "has a token of the role operate, or puts an assignment into the bucket that an operator previews on the dashboard, with guards", "a node that demands signatures runs them by the key of serve, unless `--sign-previews` says so",
			[]string{"testing/e2e.TestSignedActions"}},
		{"preview-by-link", "leads an operator to the dashboard by a link, or sends forms from another site", "a manifest is filled in, or anything is done",
			[]string{"fleet/web.TestALinkWritesNoManifest", "fleet/web.TestOtherSitesCannotAct"}},
		{"nodes-swapped", "has its node leave a group and another join between the page that asks and the form", "an operator acts on a node that they were not shown",
			[]string{"fleet/ask.TestTheSameNodes", "fleet/web.TestOnlyTheNodesThatWereShown"}},
		{"plan-read", "has a token of the role read, or had one of the role operate, and opens a preview by page, stream and API", "contents of files are seen that an operator previewed",
			[]string{"fleet/web.TestReadersSeeNoPlans", "fleet/web/api.TestReadersSeeNoPlans", "fleet/web/access.TestStreamsEndWithTheirToken"}},
		{"places-held", "has a token of the role operate, and starts runs of ten minutes again and again", "other operators cannot act, or cannot end them",
			[]string{"fleet/ask.TestPlacesAreShared", "fleet/ask.TestCancel"}},
		{"author-forged", "writes assignments with names of any length and characters in their headers", "more is believed of a name than that it is a text",
			[]string{"kvstore.TestAuthor", "fleet/web.TestHostileNodes"}},
		{"plan-large", "answers a preview with 256 KiB of empty transactions", "fleet serve keeps tens of megabytes for each",
			[]string{"fleet/ask.TestPlansAreBounded", "fleet/ask.TestShortPlansFillNoMemory"}},
		{"answer-empty", "answers a request with 340,000 runs or changes of which nothing is said", "fleet serve, or a command, keeps 70 MiB for 1 MiB",
			[]string{"cmd/muster/fleetcmd.TestShortAnswersFillNoMemory"}},
		{"answer-unasked", "has the question of a node that is asked by name, and answers as itself", "it is among the results, or is waited for",
			[]string{"fleet/ask.TestNodesThatWereNotAsked", "fleet/ask.TestACancelSaysNothingOfNodes"}},
		{"report-future", "reports more than 50,000 events at times that are to come", "what operators did is left out of the history of its node",
			[]string{"fleet/assign.TestFutureReportsDisplaceNothing"}},
		{"report-resources", "reports ever more resources and manifests", "a query fills the memory of an operator, or leaves out those of others",
			[]string{"fleet/view.TestOneNodeFillsNoMemory"}},
		{"facts-unreadable", "stores facts with headers that cannot be read", "fleet forget fails, for it and for others",
			[]string{"kvstore.TestFactsWithHeadersAreInvalid"}},
		{"node-forgotten", "has the credentials of a viewer, or of an operator of some nodes, and removes states, facts and reports of a node", "a node leaves the lists of others, or its reports the stream",
			[]string{"kvstore/provision.TestOnlyAdministratorsForgetNodes"}},
		{"groups-forged", "writes groups of a node without a trusted key, replays signed ones, deletes them", "a node that demands signatures comes into a group, or out of one",
			[]string{"agent.TestSignedGroups"}},
		{"answer-without-end", "is the receiver of a webhook, or the provider of OpenID Connect, and answers by switching protocols, which ends all time limits", "what is behind waits, or `fleet serve` cannot be stopped",
			[]string{"fleet/webhook.TestReceiverThatSwitchesProtocols", "fleet/web/access.TestProviderThatSwitchesProtocols"}},
		{"failure-twice", "answers a request that it failed, and does not finish it", "it counts as more than one node, and ends the batches of others",
			[]string{"fleet/ask.TestFailuresCountNodes"}},
		{"report-id-long", "publishes reports with ids of 60 KB", "a command that follows them fills the memory of an operator",
			[]string{"cmd/muster/fleetcmd.TestLongIDsFillNoMemory"}},
		{"report-long", "publishes summaries of runs with 20,000 others that are unchanged since", "a command that shows it computes for seconds, for each of them",
			[]string{"fleet/view.TestSummariesAreNoLongerThanReports"}},
		{"webhook-flood", "reports far more than a receiver of webhooks takes", "the reports of other nodes come to it hours later",
			[]string{"fleet/webhook.TestWebhookOfAFlood", "fleet/webhook.TestWebhookLogOfAFloodIsBounded"}},
		{"webhook-refused", "reports what a receiver of webhooks refuses", "the reports of other nodes wait for each of its tries, and the log has two lines of each",
			[]string{"fleet/webhook.TestWebhookOfRefusedReports", "fleet/webhook.TestTriesOfRefusedReportsCount"}},
		{"report-batch", "publishes batches of 30,000 reports that are none", "a command that reads them writes a line for each",
			[]string{"kvstore.TestInvalidReportsOfABatchAreOneError"}},
		{"server-future", "is the server, and says that what a node has was stored years from now", "the node takes what another server has for older",
			[]string{"kvstore/watch.TestATimeInTheFutureHoldsUpNothing"}},
		{"state-unreadable", "stores a state of its node that cannot be read", "the node leaves the lists of operators, or counts as up to date",
			[]string{"testing/e2e.TestANodeWithAnUnreadableStateStays", "kvstore.TestNodesSayWhoTheyAre", "fleet.TestUnreadableNodesAreNotDone"}},
		{"header-many", "stores messages with more headers than clients read, and many of them", "other keys, requests or nodes wait for it",
			[]string{"kvstore/watch.TestHeadersThatAreTooManyHoldUpNothing", "kvstore/requests.TestCommandsWithTooManyHeadersHoldUpNothing", "agent.TestManyUnreadableKeysAreReportedTogether"}},
		{"bundle-hidden", "prepares a bundle for who signs: with entries of unusual kinds, names and modes, empty ones, one that is named like the terms", "nodes unpack what was not shown, or differently",
			[]string{"testing/e2e.TestSignShowsWhatNodesUnpack", "testing/e2e.TestFilesHideNoTerms", "testing/e2e.TestASecondSignerSeesTheContent", "resources/host/archive.TestListIsWhatUnpackLeaves", "fleet/assign.TestDiffShowsEachChange", "fleet/assign.TestNamesAreLines"}},
		{"bundle-bomb", "stores a small bundle that unpacks to much, or to many texts", "commands of an operator hang, or fill the memory",
			[]string{"testing/e2e.TestABombHangsNoCommand", "resources/host/archive.TestListEnds", "fleet/assign.TestTextsAreBounded", "fleet/assign.TestRefusedBundle"}},
		{"queue-unreadable", "queues requests, and behind them one whose headers cannot be read", "nodes read all of them again and again",
			[]string{"kvstore/requests.TestHandledCommandsAreNotReadAgain"}},
		{"request-panic", "sends and queues requests on which parsers panic, with and without `trust.keys`", "an agent ends, now or at its next start, or reports it again",
			[]string{"agent.TestRequestsThatParsersPanicOn", "agent/requests.TestAPanicEndsOneRequest", "cmd/muster/agentcmd.TestAPanicEndsOneAnswer"}},
		{"value-two-readings", "puts assignments that other parsers read in another way than nodes: line ends of YAML 1.1, keys of other case, keys twice, merged keys", "operators see, compare or sign something else than nodes run",
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
