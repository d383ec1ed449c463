import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ListenOptions } from 'node:net';

/** Linux itself assigns ports from 32,768, also to outgoing connections. */
const PORTS = { first: 10_000, end: 32_768 };

/**
 * Reserves a free loopback port until this process ends, for a program that cannot listen on port 0 and report its
 * port. The reservation is a socket in Linux's abstract namespace. No other process of this project gets the port, even
 * while the program is down.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(PORTS.first, PORTS.end);
    if (!(await listen({ path: `\0nodepool-builder-port-${port}` }))) continue;
    const probe = await listen({ port, host: '127.0.0.1' });
    if (!probe) continue;
    probe.close();
    await once(probe, 'close');
    return port;
  }
}

/** Opens a server that does not keep the process alive; undefined if the address is in use. */
async function listen(options: ListenOptions): Promise<ReturnType<typeof createServer> | undefined> {
  const server = createServer().unref();
  try {
    await once(server.listen(options), 'listening');
    return server;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return undefined;
    throw error;
  }
}
