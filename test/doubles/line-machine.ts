import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

/** Files on a disk, by path. */
export type Disk = Record<string, string>;

/** Options for starting a machine. */
export interface Boot {
  /** Own loopback address of the machine. */
  readonly host: string;
  /** Port of its SSH server. */
  readonly port: number;
  /** Public key of the permitted user, as a line of `authorized_keys`. */
  readonly publicKey: string;
  /** Called when the system has powered off. */
  readonly onPowerOff: () => void;
}

/** System of a server or an instance in a double. */
export interface Machine {
  /** Output of the serial console. */
  readonly console: string;
  readDisk(): Promise<Disk>;
  powerOff(): Promise<void>;
}

/** Starts a machine with a disk. */
export type BootMachine = (disk: Disk, boot: Boot) => Promise<Machine>;

/**
 * A machine with a disk of small files and a shell with few commands: `echo TEXT > FILE`, `cat FILE`, `poweroff`, and
 * others that do nothing. It reads one line from each connection, and sends the output.
 */
export class LineMachine implements Machine {
  console = '[    0.000000] Linux\nlogin: \n';
  readonly #disk: Disk;
  readonly #server: Server;

  private constructor(disk: Disk, onPowerOff: () => void) {
    this.#disk = disk;
    this.#server = createServer((socket) => void this.#serve(socket).then((isOff) => isOff && onPowerOff()));
  }

  static async boot(this: void, disk: Disk, { host, port, onPowerOff }: Boot): Promise<LineMachine> {
    const machine = new LineMachine(disk, onPowerOff);
    await once(machine.#server.listen(port, host), 'listening');
    return machine;
  }

  async readDisk(): Promise<Disk> {
    return this.#disk;
  }

  async powerOff(): Promise<void> {
    this.console += '[    1.000000] reboot: Power down\n';
    const closed = once(this.#server, 'close');
    this.#server.close();
    await closed;
  }

  /** @returns whether to power off */
  async #serve(socket: Socket): Promise<boolean> {
    socket.on('error', () => {}); // the client may close the connection
    for await (const line of createInterface(socket)) {
      const commands = line.split(';').map((command) => command.trim());
      socket.end(commands.map((command) => this.#run(command)).join(''));
      return commands.includes('poweroff');
    }
    return false;
  }

  #run(command: string): string {
    const [, text, target] = /^echo (.*) > (\S+)$/.exec(command) ?? [];
    if (text !== undefined && target !== undefined) this.#disk[target] = `${text}\n`;
    const [, source] = /^cat (\S+)$/.exec(command) ?? [];
    return source === undefined ? '' : (this.#disk[source] ?? '');
  }
}
