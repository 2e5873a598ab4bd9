package run

import (
	"errors"
	"math/rand/v2"
	"syscall"
	"time"

	"ndnpop/face"
	"ndnpop/fw"
	"ndnpop/ndn"
)

// Retries of a permanent face: the pause doubles from the first to the last,
// each with up to a quarter more at random, so that peers that lost the same
// neighbour do not come back at the same instant.
const (
	firstPause = 250 * time.Millisecond
	lastPause  = 30 * time.Second
	// lastDatagramPause is shorter: a probe is one small packet, and nobody
	// tells us when the peer's process is back.
	lastDatagramPause = 2 * time.Second
	// probation is how long a datagram face that ICMP had refused is tried
	// before silence counts as a sign that somebody listens again, if nothing is
	// known that says otherwise. A host may send only one refusal a second to a
	// peer (Linux: icmp_ratelimit), and has spent those on what was under way when
	// it went down; together with firstPause the last probe goes out more than a
	// second after that.
	probation = time.Second
	// awayProbation is for a host that is itself away: the one before it asks for
	// it three times, a second apart, before it says so (ARP; RFC 4861, 7.2.2).
	awayProbation = 4 * time.Second
	// lastProbation is the longest: who has to refuse many, such as a host with
	// hundreds of ports, may not get to this face for long.
	lastProbation = time.Minute
)

// silence is how long a datagram face must be probed in vain before that means
// that somebody listens; at least probation.
type silence time.Duration

func (s silence) length() time.Duration { return max(time.Duration(s), probation) }

// probes is how often to probe in that time: four times, whatever it is, since
// more probes find no more refusals where those are limited.
func (s silence) probes() time.Duration { return s.length() * 3 / 10 }

// refused notes a refusal, that much later than the first probe, and whether the
// peer was heard meanwhile. If it was not, and the face was up, the silence before
// has meant nothing.
func (s *silence) refused(why error, later time.Duration, heard bool) {
	need := probation
	if !errors.Is(why, syscall.ECONNREFUSED) {
		need = awayProbation
	}
	if !heard && later-s.length() < lastProbation {
		if need = max(need, s.length()); later > s.length() {
			need = max(need, min(2*later, lastProbation))
		}
	}
	*s = silence(need)
}

// faceUp marks a face up whose transport is tr.
func (f *Forwarder) faceUp(fc *netFace, tr face.Transport) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fc.mu.Lock()
	change := !fc.gone && !fc.up && fc.tr == tr && tr != nil
	if change {
		fc.up, fc.probing, fc.downWhy = true, nil, nil
	}
	fc.mu.Unlock()
	if change {
		if fc.greeting != nil {
			f.alarms.arm(fc.greeting, f.clock.now())
		}
		f.call(func(now ndn.Time, s *fw.Shard) { s.FaceUp(now, fc.id) })
		f.emit(Event{Kind: FaceUp, Face: fc.snapshot(f.clock.now())})
	}
}

// faceDown marks a face down because tr has ended.
func (f *Forwarder) faceDown(fc *netFace, tr face.Transport, why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fc.mu.Lock()
	change := false
	if fc.tr == tr {
		if change = fc.up; change {
			fc.downSince = f.clock.now()
		}
		fc.downWhy = why
		// A probation that goes on must not find it and bring the face up.
		fc.up, fc.tr, fc.probing = false, nil, nil
	}
	fc.mu.Unlock()
	if change {
		f.call(func(now ndn.Time, s *fw.Shard) { s.FaceDown(now, fc.id) })
		f.emit(Event{Kind: FaceDown, Face: fc.snapshot(f.clock.now()), Err: why})
	}
}

// ended decides what the end of a transport means for its face, and reports
// whether the face lives on and wants another.
func (f *Forwarder) ended(fc *netFace, tr face.Transport, why error) (again bool) {
	fc.mu.Lock()
	again = fc.persistency == face.PersistencyPermanent && !fc.gone && f.ctx.Err() == nil
	fc.mu.Unlock()
	if !again {
		f.destroy(fc, why)
		return false
	}
	f.faceDown(fc, tr, why)
	return true
}

// live is the goroutine of a dialled face: it serves the transport and
// replaces it as long as the face is permanent. Without a transport it dials: at
// once if now is set, for the first time, and otherwise because one has ended.
func (f *Forwarder) live(fc *netFace, tr face.Server, now bool) {
	pause, told, lost := firstPause, false, false
	var enough silence
	probed, ended := false, tr == nil && !now // this transport; one before it
	for {
		if tr != nil {
			told = false
			heard, since := fc.heard(), f.clock.now()
			why := tr.Serve(&ingress{fc: fc, tr: tr})
			if !f.ended(fc, tr, why) {
				return
			}
			spoke := fc.heard() != heard
			if spoke {
				pause = firstPause
			}
			enough.refused(why, f.clock.now().Sub(since), spoke || !probed)
			ended = true
		}
		if !now {
			alive, called := fc.sleep(pause + time.Duration(rand.Int64N(int64(pause/4))))
			if !alive {
				return
			}
			if called {
				enough = 0
			}
			if pause = min(2*pause, lastPause); isDatagram(fc.uri) && !lost {
				pause = min(pause, lastDatagramPause)
			}
		}
		now = false
		next, err := fc.dial()
		// Who is asked for the address of a host is not to be bothered all the time.
		if lost = err != nil && !atOnce(fc.uri); err != nil {
			tr = nil
			fc.mu.Lock()
			fc.downWhy = err
			fc.mu.Unlock()
			if !told && f.ctx.Err() == nil {
				told = true
				f.emit(Event{Kind: FaceUnreachable, Face: fc.snapshot(f.clock.now()), Err: err})
			}
			continue
		}
		tr, probed = next, ended
		if !f.attach(fc, tr, probed, enough) {
			_ = tr.Close()
			return
		}
	}
}

// dial opens the face's transport again.
func (fc *netFace) dial() (face.Server, error) {
	fc.mu.Lock()
	mtu := fc.mtu
	fc.mu.Unlock()
	if fc.open != nil {
		return fc.open(fc.f.ctx)
	}
	return fc.f.dial(fc.uri, mtu)
}

// sleep waits before a reconnection, until the peer calls at most. Not to be alive
// means that the face is gone.
func (fc *netFace) sleep(d time.Duration) (alive, called bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true, false
	case <-fc.poke:
		return true, true
	case <-fc.wake:
	case <-fc.f.ctx.Done():
	}
	return false, false
}

func (fc *netFace) heard() uint64 {
	fc.mu.Lock()
	defer fc.mu.Unlock()
	return fc.link.Counters().InFrames
}

// attach gives a face a new transport. A stream that has connected is up, as is
// the first transport of all. A datagram socket after one that has ended says
// nothing about the peer, and is to be on probation: idle packets (NDNLPv2) make a
// host where nobody listens say so, and only an answer, or their silent
// disappearance for a while, brings the face up. Its routes are not used
// before, so that no Interest is sent there to find out.
func (f *Forwarder) attach(fc *netFace, tr face.Transport, probe bool, enough silence) bool {
	info := tr.Info()
	f.mu.Lock()
	fc.mu.Lock()
	if fc.gone || f.closed {
		fc.mu.Unlock()
		f.mu.Unlock()
		return false
	}
	info.Scope = fc.info.Scope // told to the shard, once and for all
	fc.tr, fc.info = tr, info
	fc.setMTULocked(tr.MTU())
	if probe = probe && !info.Stream; probe {
		if fc.probe == nil {
			fc.probe = newAlarm(fc.probeDue)
		}
		fc.probing, fc.silence, fc.probeEnd = tr, enough, f.clock.now().Add(enough.length())
	}
	fc.mu.Unlock()
	f.nameURI(fc, info.RemoteURI)
	f.mu.Unlock()
	if !probe {
		f.faceUp(fc, tr)
		return true
	}
	fc.sendIdle(tr)
	f.alarms.arm(fc.probe, f.clock.now().Add(enough.probes()))
	return true
}

// probeDue is the timer of a probation.
func (fc *netFace) probeDue(now ndn.Time) ndn.Time {
	fc.mu.Lock()
	tr, end, every := fc.probing, fc.probeEnd, fc.silence.probes()
	fc.mu.Unlock()
	switch {
	case tr == nil: // refused, or up already
		return ndn.Never
	case now >= end:
		fc.f.faceUp(fc, tr)
		return ndn.Never
	}
	fc.sendIdle(tr)
	return min(now.Add(every), end)
}

// sendIdle sends a link packet without a fragment. It carries a Challenge,
// which a link of this project answers at once; to others it says nothing.
func (fc *netFace) sendIdle(tr face.Transport) {
	var idle face.Frames
	idle.Buf = ndn.AppendLpPacket(nil, &ndn.LpHeader{HasChallenge: true, Challenge: rand.Uint64()}, nil)
	idle.End()
	fc.sendMu.Lock()
	tr.Send(&idle)
	fc.sendMu.Unlock()
	fc.flush() // what others left to the holder of sendMu
}
