package model

// RegisterEntry is an entry of the property register_when_stable: a service that is registered while the
// resource is in its desired state.
type RegisterEntry struct {
	Cluster     string            `json:"cluster" jsonschema_description:"Cluster that the service belongs to: letters, digits, - and _"`
	Service     string            `json:"service" jsonschema_description:"Name of the service: letters, digits, - and _"`
	Protocol    string            `json:"protocol" jsonschema_description:"Protocol of the service: http, https, mysql"`
	Address     string            `json:"address" jsonschema_description:"IP address or host name"`
	Port        *int              `json:"port,omitempty" jsonschema:"minimum=1,maximum=65535" jsonschema_description:"Port of the service; a service without a port is not a target of Prometheus"`
	Priority    *int              `json:"priority,omitempty" jsonschema:"default=1" jsonschema_description:"1 to 255; lower first"`
	TTL         *TTL              `json:"ttl,omitempty" jsonschema:"default=1m" jsonschema_description:"Time to live unless renewed, at least 3s; never keeps it until it is withdrawn"`
	Annotations map[string]string `json:"annotations,omitempty" jsonschema_description:"Annotations (key/value metadata)"`
}
