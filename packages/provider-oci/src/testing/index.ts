export {
  type Fault,
  RegistryDouble,
  type RegistryDoubleOptions,
  type SeenRequest,
} from './registry-double.ts';
export type { Answer, RegistryState, StateOptions } from './registry-state.ts';
