import { once } from 'node:events';
import net from 'node:net';
import { ConnectionError } from '../errors.ts';
import { DEFAULT_PORT, formatAddress, type ServerAddress } from './server-address.ts';

/** Milliseconds before the first keep-alive probe. A job server may be silent for hours. */
const KEEP_ALIVE_DELAY = 10_000;

/**
 * The buffer into which all sockets of this thread read, one after the other. Node otherwise allocates 64 KiB for each
 * read, and passes the bytes through a stream, which costs more than all else that a small packet needs.
 */
const READ_BUFFER = Buffer.allocUnsafeSlow(64 * 1024);

/** Options of {@link openSocket}. */
export interface OpenOptions {
  /** Timeout for connecting in milliseconds, including the TLS handshake. */
  readonly timeout: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Connects to a job server, over TLS if the address has `tls`.
 *
 * @throws ConnectionError `connect-failed`
 */
export async function openSocket(address: ServerAddress, options: OpenOptions): Promise<net.Socket> {
  try {
    return await connect(address, options);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message || cause.name : String(cause);
    const { code, syscall } = Object(cause) as NodeJS.ErrnoException;
    const isOfTls = address.tls !== undefined && code !== undefined && syscall === undefined;
    const remedy = isOfTls ? 'check its certificate, and the option tls' : 'is it running there?';
    throw new ConnectionError(
      'connect-failed',
      `cannot connect to the job server ${formatAddress(address)}: ${reason}; ${remedy}`,
      { cause },
    );
  }
}

async function connect(address: ServerAddress, { signal, timeout }: OpenOptions): Promise<net.Socket> {
  signal?.throwIfAborted();
  const { host, port = DEFAULT_PORT } = address;
  // `tls` never falls back to plain text, even if it has no options.
  const isSecure = address.tls !== undefined;
  const options = typeof address.tls === 'function' ? address.tls() : address.tls;
  const target = {
    host,
    port,
    onread: {
      buffer: READ_BUFFER,
      callback: (length: number) => {
        const chunk = Buffer.allocUnsafe(length);
        READ_BUFFER.copy(chunk, 0, 0, length);
        if (!socket.emit('data', chunk)) socket.unshift(chunk); // for a later listener
        return true;
      },
    },
  };
  // Node.js takes 20 ms to load node:tls.
  const socket: net.Socket = isSecure
    ? process.getBuiltinModule('node:tls').connect({ ...options, ...target })
    : net.connect(target);
  // Nagle's algorithm with delayed acknowledgements delays each job by 40 ms.
  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEP_ALIVE_DELAY);
  socket.on('error', () => {}); // once() stops listening when the attempt is aborted, before it rejects

  // The listener is removed after each attempt, because `signal` lives as long as the client or worker.
  const end = new AbortController();
  const onAbort = () => end.abort(signal?.reason);
  signal?.addEventListener('abort', onAbort);
  const timer = setTimeout(() => end.abort(new Error(`no response within ${timeout} ms`)), timeout);
  try {
    await once(socket, isSecure ? 'secureConnect' : 'connect', { signal: end.signal });
    return socket;
  } catch (error) {
    socket.destroy();
    throw end.signal.aborted ? end.signal.reason : error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}
