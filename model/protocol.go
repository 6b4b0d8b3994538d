package model

// The protocol ids of the documents (spec/formats.md, "Documents on the wire").
const (
	ProtocolTransaction    = "io.choria.ccm.v1.transaction.event"
	ProtocolEnsureRequest  = "io.choria.ccm.v1.resource.ensure.request"
	ProtocolEnsureResponse = "io.choria.ccm.v1.resource.ensure.response"
	ProtocolAssignment     = "io.muster.v1.assignment"
	ProtocolRun            = "io.muster.v1.run"
	ProtocolNode           = "io.muster.v1.node"
	ProtocolAgent          = "io.muster.v1.agent"
	ProtocolHealth         = "io.muster.v1.health"
	ProtocolRegistration   = "io.muster.v1.registration"
	ProtocolStatement      = "io.muster.v1.statement"
	ProtocolPause          = "io.muster.v1.pause"
	ProtocolLabels         = "io.muster.v1.labels"
	ProtocolGroups         = "io.muster.v1.groups"
	ProtocolRunRequest     = "io.muster.v1.run.request"
	ProtocolRunResponse    = "io.muster.v1.run.response"
	ProtocolCancelRequest  = "io.muster.v1.cancel.request"

	ProtocolPreviewRequest  = "io.muster.v1.preview.request"
	ProtocolPreviewResponse = "io.muster.v1.preview.response"
)

// StateProtocol is the protocol id of the state of a resource type.
func StateProtocol(typ string) string { return "io.choria.ccm.v1.resource." + typ + ".state" }
