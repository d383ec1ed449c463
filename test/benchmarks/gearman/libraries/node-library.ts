/** Address of the job server. */
export interface Server {
  readonly host: string;
  readonly port: number;
}

/** Runs a job in the foreground, and resolves with its result. */
export type Submit = (payload: Buffer) => PromiseLike<Uint8Array>;

/** Registers functions on one connection and deregisters them. */
export interface Functions {
  register(names: readonly string[]): Promise<void> | void;
  unregister(names: readonly string[]): Promise<void> | void;
}

/** Receives the next chunk of a packet stream. */
export type Feed = (chunk: Buffer) => void;

/** Adapter between a Node library and the benchmarks. */
export interface NodeLibrary {
  /** Starts a worker that echoes. `concurrency` is for libraries that run several jobs at a time. */
  work(server: Server, functionName: string, concurrency: number): void;
  connect(server: Server, functionName: string): Promise<Submit> | Submit;
  /** Absent if one connection cannot register and deregister many functions. */
  functions?(server: Server): Promise<Functions> | Functions;
  /** Calls `onPacket` once for each decoded packet. Absent if the library cannot decode chunks of any size. */
  decoder?(onPacket: () => void): Feed;
}
