/** Where the job server is. */
export interface Server {
  readonly host: string;
  readonly port: number;
}

/** Runs a job in the foreground; resolves with its result. */
export type Submit = (payload: Buffer) => PromiseLike<Uint8Array>;

/** Registers functions on one connection, and deregisters them. */
export interface Functions {
  register(names: readonly string[]): Promise<void> | void;
  unregister(names: readonly string[]): Promise<void> | void;
}

/** Takes the next chunk of a stream of packets. */
export type Feed = (chunk: Buffer) => void;

/** Adapter of a library on Node for the benchmarks. */
export interface NodeLibrary {
  /** Starts a worker that echoes. `concurrency` is for a library that runs several jobs at a time. */
  work(server: Server, functionName: string, concurrency: number): void;
  connect(server: Server, functionName: string): Promise<Submit> | Submit;
  /** Absent if one connection cannot register and deregister many functions. */
  functions?(server: Server): Promise<Functions> | Functions;
  /** Calls `onPacket` once for each decoded packet. Absent if the library cannot decode chunks of any size. */
  decoder?(onPacket: () => void): Feed;
}
