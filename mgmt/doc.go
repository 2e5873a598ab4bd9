// Package mgmt speaks the NFD management protocol
// (https://redmine.named-data.net/projects/nfd/wiki/Management): the encoding
// of commands, answers, datasets and notifications, and the client's side of
// an exchange as state machines without I/O. Package mgmt/client drives them
// over a socket; package fw/mgmt is the server's side.
//
// # Why not ndnd's models
//
// ndnd's std/ndn/mgmt_2022 has models of the same elements. They are the
// oracle of this package's tests, not its implementation. Its generated
// decoders take an element that is cut short inside for a shorter one: a
// ControlParameters whose Name claims 2^63 bytes decodes without an error as
// the name "/", so that a damaged command would register the root prefix. They
// take numbers of any length, and keep the last of two equal fields. Its
// models also lack what optional fields of a reply need (a StatusText without
// a body) and ChannelStatus. Here a length is checked before it is used, a
// repeated or malformed field is an error, and names stay views of this
// module's own type.
//
// Requests are decoded strictly (an unknown critical field is refused, as the
// packet specification demands); what a forwarder says is decoded tolerantly
// (unknown fields are skipped), so that a newer NFD does not break a tool.
package mgmt
