//go:build !unix

package stream

// read waits for the connection to have something and reads it.
func (t *Transport) read() error {
	t.in.take()
	n, err := t.conn.Read(t.in.buf.bytes[t.in.have:])
	t.in.n = n
	return err
}

// readNow is not used: reading waits with its buffer.
func (t *Transport) readNow(uintptr) bool { return true }
