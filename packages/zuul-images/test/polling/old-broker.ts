import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

/** Position of the version in a CONNECT packet. */
const VERSION_AT = 8;

const CONNECT = 0x10;
const SUBSCRIBE = 0x82;

/**
 * A minimal broker that supports only MQTT 3.1.1. It expects packets below 128 bytes, each in its own chunk.
 */
export class OldBroker implements AsyncDisposable {
  /** MQTT versions that clients have requested. */
  readonly versions: number[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor() {
    this.#server = createServer((socket) => {
      this.#sockets.add(socket.on('close', () => this.#sockets.delete(socket)));
      socket.on('error', () => {}).on('data', (packet) => this.#respond(socket, packet));
    });
  }

  static async start(): Promise<OldBroker> {
    const broker = new OldBroker();
    await once(broker.#server.listen(0, '127.0.0.1'), 'listening');
    return broker;
  }

  get url(): string {
    return `mqtt://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  publish(topic: string, payload: Buffer): void {
    const name = Buffer.from(topic);
    const length: number[] = [];
    for (let rest = 2 + name.length + payload.length; rest > 0; rest >>= 7) {
      length.push((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
    }
    const head = Buffer.from([0x30, ...length, 0, name.length]);
    for (const socket of this.#sockets) socket.write(Buffer.concat([head, name, payload]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server.close(), 'close');
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #respond(socket: Socket, packet: Buffer): void {
    if (packet[0] === CONNECT) {
      const version = packet[VERSION_AT] ?? 0;
      this.versions.push(version);
      if (version === 4) socket.write(Buffer.from([0x20, 2, 0, 0]));
      else socket.end(Buffer.from([0x20, 2, 0, 1]));
    } else if (packet[0] === SUBSCRIBE) {
      socket.write(Buffer.from([0x90, 3, packet[2] ?? 0, packet[3] ?? 0, 0]));
    }
  }
}
