export type { ArmCloud, ArmDoubleOptions } from './arm-cloud.ts';
export { ArmDouble, type ArmFault, type ArmRequest } from './arm-double.ts';
export { ArmRefusal } from './arm-model.ts';
export { Azurite } from './azurite.ts';
export type { BlobAccount } from './disk-store.ts';
