import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { RawPeer } from '../../packages/gearman-node/test/fixtures/raw-peer.ts';

/** A job server that accepts one connection, so that a peer that has lost it uses another server. */
export class HostileServer {
  readonly address: { readonly host: string; readonly port: number };
  /** The only connection. Its peer must send valid packets. */
  readonly accepted: Promise<RawPeer>;

  private constructor(server: Server) {
    const { port } = server.address() as { port: number };
    this.address = { host: '127.0.0.1', port };
    this.accepted = new Promise((resolve) => {
      server.once('connection', (socket) => {
        server.close();
        resolve(new RawPeer(socket, 'RES'));
      });
    });
  }

  static async listen(): Promise<HostileServer> {
    const server = createServer({ noDelay: true }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new HostileServer(server);
  }
}
