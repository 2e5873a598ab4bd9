// Package web runs the HTTP software of a content delivery network at emulated
// hosts, from configuration that it writes: nginx or Apache httpd as origin
// servers, Apache Traffic Server as caches, curl as the client.
//
// Nothing of the machine's own configuration is read. All servers die with the
// emulated network.
package web
