// Package reports is the stream of reports, as CloudEvents.
package reports
