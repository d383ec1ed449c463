/** A double of AWS for tests. */
export { AwsDouble, type AwsFault, type AwsRequest } from './aws-double.ts';
export type { DoubleInstanceType, InstanceState } from './cloud-state.ts';
export type { Boot, BootMachine, Disk, Machine } from './machine.ts';
export { AwsRefusal } from './model.ts';
export type { AwsDoubleOptions, Region } from './region.ts';
export { allBlocks, BLOCK_SIZE } from './snapshots.ts';
