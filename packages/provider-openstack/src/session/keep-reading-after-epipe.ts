/* oxlint-disable eslint/no-underscore-dangle -- _write and _writev are how a Writable is implemented */
import type { Socket } from 'node:net';

type Written = (error?: Error | null) => void;

/**
 * Keeps a socket readable after a failed write. uwsgi, which runs Glance, closes the connection at once when it refuses
 * a body early. The answer is then in our receive buffer, but the next write fails with EPIPE or ECONNRESET, and Node
 * would destroy the socket with the answer unread. The failed write stays pending instead; the end of the stream or the
 * owner's timeout ends the connection.
 */
export function keepReadingAfterEpipe(socket: Socket): void {
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
