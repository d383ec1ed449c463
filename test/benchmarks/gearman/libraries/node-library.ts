/** Where the job server is. */
export interface Server {
  readonly host: string;
  readonly port: number;
}

/** Runs a job in the foreground; resolves with its result. */
export type Submit = (payload: Buffer) => PromiseLike<Uint8Array>;

/** Offers functions on one connection, and takes them back. */
export interface Functions {
  register(names: readonly string[]): Promise<void> | void;
  unregister(names: readonly string[]): Promise<void> | void;
}

/** Takes the next chunk of a stream of packets. */
export type Feed = (chunk: Buffer) => void;

/** How the benchmarks drive a library on Node. */
export interface NodeLibrary {
  /** Starts a worker that echoes. `concurrency` is for a library that runs several jobs at a time. */
  work(server: Server, functionName: string, concurrency: number): void;
  connect(server: Server, functionName: string): Promise<Submit> | Submit;
  /** Absent where one connection cannot offer many functions and take each of them back. */
  functions?(server: Server): Promise<Functions> | Functions;
  /** `onPacket` is to be called once for each packet that was decoded. Absent where chunks of any size are not decoded. */
  decoder?(onPacket: () => void): Feed;
}
