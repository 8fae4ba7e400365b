/* Included before all of HPL, which calls two functions by names that MPI 3 took
 * away. Their arguments are the same. */
#include <mpi.h>
#undef MPI_Address
#define MPI_Address MPI_Get_address
#undef MPI_Type_struct
#define MPI_Type_struct MPI_Type_create_struct
