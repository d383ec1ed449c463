/* oxlint-disable eslint/no-underscore-dangle -- _write and _writev are how a Writable is implemented */
import type { Socket } from 'node:net';

type Written = (error?: Error | null) => void;

/**
 * Makes a socket go on reading when it can no longer be written to. uwsgi, which Glance runs in, closes the
 * connection at once when it refuses a body early: the answer is then in our receive buffer, but the next write fails
 * with ECONNRESET, upon which Node destroys the socket with the answer unread. A failed write is left pending
 * instead; the end of the stream or the owner's time limit ends the connection.
 */
export function readOnAfterWriteError(socket: Socket): void {
  const write = socket._write.bind(socket);
  socket._write = (chunk, encoding, written) => write(chunk, encoding, unlessFailed(written));
  const writev = socket._writev?.bind(socket);
  if (writev !== undefined) socket._writev = (chunks, written) => writev(chunks, unlessFailed(written));
}

function unlessFailed(written: Written): Written {
  return (error) => {
    if (!error) written();
  };
}
